"""What `audit-access` finds: leaks by route and step, before and after the filter, without their texts."""

import json
from contextlib import contextmanager

import pytest

from core.backends import embedder as embedder_module
from core.cli import main
from core.corpus import catalogue, index
from core.corpus.corpus import Corpus
from core.domain import filters
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import engine as engine_module
from core.engine.engine import Engine
from core.evaluation import access as audit
from core.evaluation.dataset import LabelledSet, Question
from core.routes.registry import pick
from tests.fakes import HashEmbedder

pytestmark = pytest.mark.trust
RULES = {"department": {"hr": ("hr", "board")}}
SECRET = "the severance of Miriam Okonkwo was settled at ninety thousand euros last spring"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Settings and a corpus in which every third document is of department hr."""
    folder = tmp_path_factory.mktemp("access")
    (folder / "shop").mkdir()
    rows = []
    for number, where in enumerate(["hr", "sales", "support"] * 6):
        text = f"Note {number} of {where}. " + (f"Parcel rule {number} holds." if number else SECRET)
        rows.append({"_id": f"doc-{number}", "title": f"Topic {number}", "text": text})
        rows[-1]["metadata"] = {"department": where}
    (folder / "shop" / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = Settings(home=folder / "home")
    with hashed():
        index.build("shop", folder / "shop", settings=settings)
    return settings


@contextmanager
def hashed():
    with pytest.MonkeyPatch.context() as patch:
        for module in (embedder_module, index):
            patch.setattr(module, "load_embedder", lambda *_, **__: HashEmbedder())
        for module in (embedder_module, index, catalogue):
            patch.setattr(module, "embedder_identity", lambda name, _settings: name)
        yield


@pytest.fixture
def engine(home, monkeypatch):
    """A real engine over it."""
    made = Engine(home)
    monkeypatch.setattr(settings_module, "current", lambda: home)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    with hashed():
        yield made


QUESTIONS = LabelledSet(
    "shop",
    (
        Question("pay", Query("What was the severance of Miriam Okonkwo?")),
        Question("open", Query("Which parcel rule holds?")),
    ),
    {"pay": {"doc-0": 1}, "open": {"doc-1": 1, "doc-0": 1}},
)


def steps(found, route):
    return {step: (len(one.before), len(one.after)) for step, one in found.leaks.get(route, {}).items()}


def test_a_filtered_search_is_clean_and_an_unfiltered_one_is_not(engine):
    found = audit.audit_access(
        engine, "shop", "sales", RULES, pick("bm25,prf_rm3"), labelled=QUESTIONS, canaries=1
    )
    assert (found.labelled, found.canaries, found.documents, found.leaked) == (1, 1, 6, 0)
    assert found.asked == {"bm25": 3, "prf_rm3": 3}
    assert steps(found, "bm25")["search"] == (3, 0)
    assert steps(found, "bm25")["answer"][0] > 0
    assert steps(found, "prf_rm3")["rewrite"][0] > 0, "feedback terms come from forbidden passages"
    assert engine.store is None
    assert engine.corpus("shop").size == 18, "nothing was planted here"


def test_what_enrichments_and_memory_keep_gets_in_after_the_filter(engine):
    found = audit.audit_access(engine, "shop", "sales", RULES, pick("graph,memory"), canaries=2)
    assert steps(found, "graph")["graph"][1] > 0, "the graph was made of forbidden passages too"
    assert steps(found, "memory")["memory"][1] > 0, "earlier answers are remembered whoever got them"
    assert found.leaked
    assert not found.document()["clean"]


def test_a_route_that_fails_with_the_filter_is_not_clean(engine, monkeypatch):
    search = Corpus.search_sparse

    def broken(self, text, k, engine="bm25s", where=()):
        if where:
            raise RuntimeError("this index cannot filter")
        return search(self, text, k, engine, where)

    monkeypatch.setattr(Corpus, "search_sparse", broken)
    found = audit.audit_access(engine, "shop", "sales", RULES, pick("bm25,grep"), canaries=1)
    assert found.failed == {"bm25": found.asked["bm25"]}
    assert found.leaked == 0
    assert not found.document()["clean"]


def test_the_command_prints_ids_and_no_text_and_its_exit_code_tells(engine, tmp_path, capsys):
    file = tmp_path / "questions.jsonl"
    file.write_text(
        json.dumps({"id": "pay", "question": "What was settled last spring?", "relevant": ["doc-0"]})
    )
    common = ["audit-access", "shop", "--as", "sales", "--access", "department=hr:hr,board", "--json"]
    assert main([*common, "--routes", "bm25", "--questions", str(file), "--canaries", "1"]) == 0
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert document["clean"]
    assert document["questions"] == {"labelled": 1, "canaries": 1}
    assert document["note"] == audit.NOTE
    assert "Okonkwo" not in printed
    (route,) = document["routes"]
    assert {one["passage"] for step in route["steps"] for one in step["examples"]} >= {"doc-0"}
    assert main([*common, "--routes", "graph", "--canaries", "1"]) == 1


@pytest.mark.parametrize(
    "more",
    [
        ("--as", "sales"),  # no rules
        ("--as", "hr", "--access", "department=hr:hr"),  # may see everything
        ("--as", "sales", "--access", "department"),
        ("--as", "sales", "--access", "department=hr:hr", "--routes", "nothing"),
        ("--as", "sales", "--access", "department=*:hr"),  # may see nothing
    ],
)
def test_what_cannot_be_tested_is_bad_input(engine, more):
    assert main(["audit-access", "shop", *more]) == 2


def test_rules_become_filters():
    assert list(map(str, filters.conditions(RULES, "sales"))) == ["department!=hr"]
    closed = {"level": {"1": ("staff",), "2": ("board", "staff"), "*": ("board",)}}
    assert filters.conditions(closed, "staff")[0].operator == "in"
    assert filters.conditions(closed, "staff")[0].values == ("1", "2")
    assert filters.forbidden_value(closed, "board") == ("level", "1")
    with pytest.raises(BadInput):
        filters.with_rules({}, ["department=hr"])
