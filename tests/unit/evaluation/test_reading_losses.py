"""Labels whose words were lost before the index count as not found, and say how they were lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.passage_trace import PassageTrace
from core.corpus import catalogue, index
from core.corpus.chunk import Chunking
from core.domain.settings import Settings
from core.domain.types import RouteResult
from core.evaluation import sets
from core.evaluation.dataset import Evidence, Written
from core.evaluation.labels_file import fates, find, is_lost, losses
from tests.fakes import HashEmbedder
from tests.realistic import COUNCIL, STORY, files

pytestmark = pytest.mark.process
SPLIT = " ".join(STORY[:2])
QUOTES = {
    "kept": ("partly-scanned.pdf", STORY[4]),
    "scanned": ("partly-scanned.pdf", COUNCIL[0]),
    "hidden": ("hours.html", "Draft text of the editor"),
    "damaged": ("partly-scanned.pdf", "Dogs travel free of all charge whenever they are kept on a lead."),
    "split": ("partly-scanned.pdf", SPLIT),
    "skipped": ("scan.pdf", STORY[0]),
    "missing": ("nowhere.md", "Words."),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    home = tmp_path_factory.mktemp("losses")
    folder = home / "source"
    folder.mkdir()
    for file in files():
        if file.name in ("partly-scanned.pdf", "hours.html", "scan.pdf"):
            (folder / file.name).write_bytes(file.content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "load_embedder", lambda _name, *, settings: HashEmbedder())
        for module in (index, catalogue):
            patch.setattr(module, "embedder_identity", lambda name, _settings: name)
        settings = Settings(home=home / "home", embedder="hash")
        return index.build("losses", folder, settings=settings, chunking=Chunking(80))


WRITTEN = Written("set", (), {id: (Evidence(doc, 3, quote),) for id, (doc, quote) in QUOTES.items()})


def test_a_lost_label_rejects_no_set_and_is_found_by_nothing(corpus):
    labelled, said = sets.tie(WRITTEN, corpus)
    lost = {id for id, grades in labelled.qrels.items() if all(map(is_lost, grades))}
    assert lost == {"scanned", "hidden", "damaged", "skipped", "missing"}
    assert not corpus.by_ids([id for question in lost for id in labelled.qrels[question]])
    assert len(said) == 1
    assert list(losses(WRITTEN, corpus, "kept")) == []
    assert said[0].startswith("5 labels were lost before the index: 4 not read, 1 damaged in reading.")


@pytest.mark.parametrize(
    ("question", "kind", "why"),
    [
        ("scanned", "not read", "2 of 3"),
        ("hidden", "not read", "hidden elements"),
        ("damaged", "damaged in reading", "partly-scanned.pdf"),
        ("split", "split", "passages have a part of it"),
        ("skipped", "not read", "no text"),
        ("missing", "not read", "not in the corpus"),
    ],
)
def test_each_loss_has_its_kind_and_reason(corpus, question, kind, why):
    (loss,) = losses(WRITTEN, corpus, question)
    assert (loss.kind, why in loss.why) == (kind, True)
    if kind == "damaged in reading":
        assert "Dogs travel free of charge" in loss.nearest
    trace = PassageTrace(RouteResult("r", "R", "ok", 1.0), before=fates([loss]))
    assert trace.fate(loss.ids[0], 10).kind in (kind, "not searched")


def test_quotes_match_whatever_their_composition_and_white_space():
    assert find("Mu\u0308nchen\n liegt", "In M\u00fcnchen liegt es") == (3, 16)
    assert find("Day 9", "| Day | 9 |") == (2, 9)
    assert find("Day 9", "| Day | 12 |") is None


@given(st.text("ab \n\u2003", min_size=1, max_size=6), st.text("ab \n\u2003", max_size=20))
def test_quotes_are_found_where_a_pattern_of_their_words_matches_first(quote, text):
    found = re.search(r"\s+".join(quote.split()), text)
    assert find(quote, text) == (found and found.span())
