"""What one odd or hostile document among many can change for all others is bounded."""

from threading import Event

import numpy as np
import pytest

from core.backends.sparse import MAX_MEDIANS, BM25Index, RankBM25Index, mean_length, write_index
from core.backends.terms import analyzer
from core.corpus.build import Stages
from core.corpus.enrichments.graph import MENTIONED, RuleGraph
from core.corpus.enrichments.recipe import Tools
from core.corpus.metadata import Metadata
from core.domain.errors import BadInput
from core.domain.filters import read_filters
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.engine import Request
from core.steps.conditions import read
from tests.fakes import FakeEngine, MemoryCorpus

pytestmark = pytest.mark.trust
ENGLISH = analyzer("english")
ODD = {"date": "soon", "number": "many", "version": "newest"}
USUAL = {"date": "2026-01-{:02}", "number": "{}", "version": "1.{}.0"}


@pytest.mark.parametrize("kind", ODD)
def test_one_odd_value_does_not_make_a_field_text(kind):
    values = [USUAL[kind].format(at) for at in range(1, 20)]
    (field,) = Metadata((f"d{at}", {"field": value}, "") for at, value in enumerate(values)).fields
    known = Metadata((f"d{at}", {"field": value}, "") for at, value in enumerate([*values, ODD[kind]]))
    assert (field.kind, known.fields[0].kind) == (kind, kind)
    first = values[0]
    assert known.meeting(read_filters([f"field>{first}"])).tolist() == [False, *[True] * 18, False]
    assert known.meeting(read_filters([f"field!={first}"])).tolist() == [False, *[True] * 19]
    assert known.meeting(read_filters([f"field~{ODD[kind]}"])).sum() == 1
    many = Metadata((f"d{at}", {"field": value}, "") for at, value in enumerate([*values, *[ODD[kind]] * 5]))
    assert many.fields[0].kind == "text"
    with pytest.raises(BadInput):
        many.meeting(read_filters([f"field>{first}"]))


def test_one_date_far_ahead_changes_no_others_weights(tmp_path):
    texts = {f"doc{at}:0-9": f"Last updated: 202{at}-01-01\nParcels are late." for at in range(4)}
    ahead = {**texts, "odd:0-9": "Last updated: 9999-12-31\nParcels are late."}

    def asked(home, given):
        (result,) = (
            FakeEngine(home, texts=given).ask(Request(Query("late parcels"), "tiny", ("recency",))).results
        )
        assert (result.status, result.error) == ("ok", None)
        reordered = next(span.output for span in result.spans if span.name == "weigh by age")
        return {one.id: dict(one.parts)["age in days"] for one in reordered.order}

    before, after = asked(tmp_path / "a", texts), asked(tmp_path / "b", ahead)
    assert after.pop("odd:0-9") == (0.0, 1.0)
    assert after == before


def test_one_state_in_another_field_does_not_decide_what_is_in_force():
    heads = [
        (f"d{at}", {"owner": "Claims", "status": "superseded" if at < 3 else "valid"}, "") for at in range(9)
    ]
    odd = ("odd", {"owner": "superseded", "status": "valid"}, "")
    question = "What do the superseded rules say?"
    for given in (heads, [odd, *heads]):
        assert [str(one.filter) for one in read(question, Metadata(given).fields)] == ["status~superseded"]


def test_one_endless_passage_hardly_changes_how_lengths_count(tmp_path):
    texts = [f"parcel {'box ' * (at % 7)} returns {'late ' * (at % 3)}" for at in range(1000)]
    endless = "unrelated " * 300_000

    def scores(name, given):
        write_index(given, tmp_path / name, ENGLISH)
        return BM25Index(tmp_path / name, len(given)).scores("late box")[:1000]

    before, after = scores("before", texts), scores("after", [*texts, endless])
    assert np.abs(after[before > 0] / before[before > 0] - 1).max() < 0.02  # by the plain mean it is 0.6
    small = [*texts[:200], "unrelated " * 50_000]
    write_index(small, tmp_path / "small", ENGLISH)
    ours, other = BM25Index(tmp_path / "small", 201), RankBM25Index(small, ENGLISH)
    np.testing.assert_allclose(ours.scores("late box"), other.scores("late box"), rtol=1e-4)
    assert mean_length([10] * 99 + [10**6]) == pytest.approx((99 * 10 + MAX_MEDIANS * 10) / 100)
    assert mean_length([3, 4, 5]) == 4


def test_one_passage_with_every_name_is_no_hub():
    names = [
        f"{a}{b}ton" for a in ("Al", "Bel", "Cor", "Dan", "Ed", "Fen") for b in ("ing", "ham", "wes", "mar")
    ]
    texts = {f"d{at}:0-9": f"We met {name} and {names[at - 1]} there." for at, name in enumerate(names)}
    corpus = MemoryCorpus({**texts, "odd:0-9": ". We met ".join(names)})
    drawn = RuleGraph().draw(corpus, Tools(Settings(), Stages(lambda *_: None, Event()), None, None))
    odd = corpus.row("odd:0-9")
    mentioned = {row: sum(at == row for _, at in drawn.mentions) for row in range(corpus.size)}
    hub = mentioned.pop(odd)
    assert hub == MENTIONED * np.median(list(mentioned.values()))
    assert hub < len(names)
