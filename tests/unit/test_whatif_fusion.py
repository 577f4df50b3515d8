"""Fusion done again from stored lists: the same as the run, and the same as a new run with other knobs."""

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.charts.shares import colours, label, share_bars, told
from core.engine import Request
from core.errors import BadInput
from core.route import routes
from core.store.codec import dumps, from_document, to_document
from core.types import Hit, Passage, Query, RouteResult, Run, Span, Turn
from core.whatif.fusion import counterpart, fusions, outcome, recompute, shares
from core.whatif.knobs import as_knobs, controls, tuned
from core.whatif.shown import arrow, list_names, moved, rows
from core.whatif.shown import given as given_shares
from tests.fakes import FakeEngine, ScriptedLLM

WORDS = (
    "parcel", "fragile", "refund", "customs", "express", "invoice", "box", "photo", "carrier", "claim",
    "vase", "return", "label", "hour",
)  # fmt: skip
QUESTION = Query(
    "How do I return a fragile vase and claim the refund?",
    (Turn("user", "My parcel with the vase arrived crushed."), Turn("assistant", "Take a photo.")),
)
FUSED = ("k", "alpha", "norm", "lam", "pool", "weights")  # settings of fusion steps
TUNED = {
    name: [k for k in route.knobs if k.tunes.partition(".")[0] in FUSED] for name, route in routes().items()
}
TUNED = {name: knobs for name, knobs in TUNED.items() if knobs}
ON = {"parent": {"alpha": 0.5}, "memory": {"expand": False, "enough": 1.01}}  # so that something is fused


def texts(count=60):
    draw = random.Random(7)
    return {f"d{n % 9}:{n}-{n + 1}": " ".join(draw.choices(WORDS, k=12)) for n in range(count)}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Sixty passages of few words, so that lists differ; a model that says the same to everything."""
    judged = {"scale": {"2": 1.0}, "relevant": "0.6", "supported": {"fully": 1.0}, "useful": {"4": 1.0}}
    llm = ScriptedLLM({"grade": "0.6", **judged, "variants": "claim a box\nexpress label\nphoto of the vase"})
    return FakeEngine(tmp_path_factory.mktemp("home"), llm=llm, texts=texts(), web={"w:0-9": "the web"})


def one(engine, route, knobs):
    result = engine.ask(Request(QUESTION, "tiny", (route,), {route: knobs}, stored=False)).results[0]
    assert (result.status, result.error) == ("ok", None)
    return result


@pytest.fixture(scope="module")
def everything(engine):
    """All routes in one run, so that equal steps are shared."""
    return engine.ask(Request(QUESTION, "tiny", tuple(routes())))


def test_every_fusion_gives_its_stored_ranking_again(everything):
    seen = set()
    shared = 0
    for result in everything.results:
        for fusion in fusions(result):
            assert fusion.lack == "", (result.route, fusion.span.name)
            assert recompute(fusion, {}) == fusion.span.hits
            seen.add(fusion.method)
            shared += fusion.span.shared_with is not None
    assert seen == {"rrf", "linear", "fitted", "marginal"}
    assert shared > 3, "their lists are named by the route's own steps"
    back = from_document(json.loads(dumps(to_document(everything))))
    for result, stored in zip(everything.results, back.results, strict=True):
        assert [recompute(f, {}) for f in fusions(stored)] == [f.span.hits for f in fusions(result)]


def test_the_shares_of_a_score_add_up_to_it(everything):
    for result in everything.results:
        for fusion in fusions(result):
            parts = shares(fusion, {})
            if fusion.method == "marginal":
                told_ = {one["id"]: one["score"] for one in fusion.span.inputs["chosen"]}
                assert {id: sum(both) for id, both in parts.items()} == pytest.approx(told_)
            else:
                assert {id: sum(part, 0.0) for id, part in parts.items()} == dict(fusion.span.hits)
                for id, part in parts.items():
                    for ranking, share in zip(fusion.lists, part, strict=True):
                        assert share == 0 or id in {hit.passage.id for hit in ranking}


def value_of(knob, draw):
    if knob.choices:
        return draw(st.sampled_from(knob.choices))
    if knob.type is int:
        return draw(st.integers(int(knob.low), int(knob.high)))
    low = 0.1 if knob.tunes.startswith("weights.2") else knob.low  # with 0 such lists are not searched
    high = 0.99 if knob.tunes == "alpha" else knob.high
    return round(draw(st.floats(low, high)), 3)


@pytest.mark.parametrize("name", list(TUNED))
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_other_knobs_give_what_a_new_run_gives(engine, name, data):
    route, on = routes()[name], ON.get(name, {})
    first = one(engine, name, on)
    found = fusions(first)
    fusion = next(f for f in reversed(found) if all(n in {**f.values, "alpha": 0} for k in TUNED[name]
                                                    for n in tuned(k)))  # fmt: skip
    wanted = {knob.name: value_of(knob, data.draw) for knob in TUNED[name]}
    changes = {setting: wanted[knob.name] for knob in TUNED[name] for setting in tuned(knob)}
    again = one(engine, name, {**on, **wanted})
    made = outcome(first, fusion, recompute(fusion, changes))
    assert made.hits == tuple((hit.passage.id, hit.score) for hit in again.hits)
    kept = as_knobs(route, fusion.span, changes)
    assert kept == wanted
    moved_ = {control.name: control for control in controls(route, first.knobs, fusion, [])}
    for knob in TUNED[name]:
        assert moved_[tuned(knob)[0]].knob == knob.name
        assert moved_[tuned(knob)[0]].names == tuned(knob)
        assert moved_[tuned(knob)[0]].low != 0 or not knob.tunes.startswith("weights.2")


@given(st.integers(1, 100), st.floats(0, 1), st.integers(1, 100))
def test_diverse_passages_are_chosen_again_for_any_setting(engine, k, lam, pool):
    first = one(engine, "mmr", {})
    (fusion,) = fusions(first)
    pool = max(10, min(pool, 60))
    again = one(engine, "mmr", {"k": k, "lam": lam, "pool": pool})
    assert recompute(fusion, {"k": k, "lam": lam, "pool": pool}) == again.spans[-1].hits


def test_a_pool_cuts_the_lists_before_they_are_fused():
    result = by_hand()
    (fusion,) = fusions(result)
    assert recompute(fusion, {"pool": 1}) == (("a", 1 / 61), ("b", 1 / 61))
    assert recompute(fusion, {"pool": 1, "weights.1": 2}) == (("b", 2 / 61), ("a", 1 / 61))


def by_hand(**inputs):
    """BM25 found a, b; vectors b, c; fused with k = 60."""
    sparse, dense = (("a", 5.0), ("b", 4.0)), (("b", 0.9), ("c", 0.8))
    fused = (("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62))
    given_ = {"lists": [1, 3], "k": 60, "weights": [1.0, 1.0], **inputs}
    spans = (
        Span(1, None, "search BM25", "RETRIEVER", 0, 1, {"text": "why"}, None, sparse),
        Span(2, None, "embed", "EMBEDDING", 1, 1, {"text": "how"}),
        Span(3, None, "search vectors", "RETRIEVER", 2, 1, {"vector": "3 vector"}, None, dense),
        Span(4, None, "fuse by reciprocal rank", "CHAIN", 3, 1, given_, None, fused),
    )
    hits = tuple(Hit(Passage(id, id, id.upper(), "", 0, 9), score) for id, score in fused)
    return RouteResult("r", "R", "ok", 4.0, hits=hits, spans=spans)


def test_ranks_and_shares_by_hand():
    result = by_hand()
    (fusion,) = fusions(result)
    names = list_names(result, fusion, "why")
    assert names == ("search BM25", "search vectors: “how”")
    after = recompute(fusion, {"weights.0": 3})
    assert after == (("b", 3 / 62 + 1 / 61), ("a", 3 / 61), ("c", 1 / 62))
    parts = shares(fusion, {"weights.0": 3})
    table = rows(fusion, fusion.span.hits, after, parts, {"c": 2}, limit=2, also=["c", "nowhere"])
    assert [(row.id, row.before, row.after, row.places, row.grade) for row in table] == [
        ("b", 1, 1, (2, 1), 0), ("a", 2, 2, (1, None), 0), ("c", 3, 3, (None, 2), 2),
    ]  # fmt: skip
    assert table[0].shares == (3 / 62, 1 / 61)
    total = sum(score for _, score in after)
    assert given_shares(table, names) == [
        (names[0], pytest.approx((3 / 62 + 3 / 61) / total)),
        (names[1], pytest.approx((1 / 61 + 1 / 62) / total)),
    ]
    assert moved(fusion.span.hits, after, {"c": 1, "x": 3, "a": 0}) == [("x", None, None), ("c", 3, 3)]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(7, 3, "7 → 3"), (3, 3, "3, as before"), (None, None, "not ranked"), (4, None, "4 → gone"),
     (None, 2, "not ranked → 2")],
)  # fmt: skip
def test_ranks_in_words(before, after, said):
    assert arrow(before, after) == said


def test_steps_after_a_fusion_are_stale():
    result = by_hand()
    (fusion,) = fusions(result)
    assert outcome(result, fusion, fusion.span.hits).stale == ()
    answer = Span(5, None, "write answer", "LLM", 4, 1, {}, "So.")
    written = replace(result, spans=(*result.spans, answer))
    made = outcome(written, fusion, fusion.span.hits)
    assert made.hits == fusion.span.hits
    assert made.stale == (answer,)
    again = replace(answer, name="rerank", kind="RERANKER", output=None, hits=fusion.span.hits)
    reranked = replace(result, spans=(*result.spans, again))
    assert outcome(reranked, fusion, fusion.span.hits).hits is None, "even where it moved nothing"
    cut = replace(result, hits=result.hits[:2])
    assert (
        outcome(cut, fusion, recompute(fusion, {"weights.1": 9})).hits
        == recompute(fusion, {"weights.1": 9})[:2]
    )


def test_a_shared_step_of_an_early_version_is_read_through_its_owner():
    owner = replace(by_hand(), route="owner")
    mine = by_hand(lists=["2 hits", "2 hits"])
    spans = tuple(replace(s, shared_with="owner#4") if s.id == 4 else s for s in mine.spans)
    mine = replace(mine, spans=spans)
    assert "not kept" in fusions(mine)[0].lack
    (found,) = fusions(mine, [mine, owner])
    assert found.lack == ""
    assert [source.id for source in found.sources] == [1, 3]
    with pytest.raises(BadInput, match="cannot be done again"):
        recompute(fusions(mine)[0], {})


@pytest.mark.parametrize(
    "inputs",
    [{"k": 61}, {"weights": [1.0, 2.0]}, {"lists": [1, 1]}, {"lists": [3, 3]}, {"lists": [1, 4]}],
)
def test_what_does_not_give_the_stored_ranking_is_not_trusted(inputs):
    (fusion,) = fusions(by_hand(**inputs))
    assert fusion.lack == "what is stored of its lists does not give its ranking"


def test_settings_that_a_step_does_not_have_are_refused():
    (fusion,) = fusions(by_hand())
    with pytest.raises(BadInput, match=r"has no 'lam'; it has: k, weights\.0, weights\.1, pool"):
        recompute(fusion, {"lam": 0.5})
    with pytest.raises(BadInput, match="RRF k is -1"):
        recompute(fusion, {"k": -1})


def test_an_early_diversity_step_says_why_it_cannot_be_tried(engine):
    result = one(engine, "mmr", {})
    bare = {k: v for k, v in result.spans[-1].inputs.items() if k not in ("near", "alike", "lists")}
    early = replace(result, spans=(*result.spans[:-1], replace(result.spans[-1], inputs=bare)))
    (fusion,) = fusions(early)
    assert "made by an earlier version" in fusion.lack


def test_the_counterpart_is_the_step_over_as_many_lists():
    (fusion,) = fusions(by_hand())
    other = by_hand()
    assert counterpart(other, fusion, ranks=True).span == other.spans[-1]
    three = by_hand(lists=[1, 3, None], weights=[1.0, 1.0, 1.0])
    assert counterpart(three, fusion, ranks=True) is None


def test_only_what_knobs_set_can_be_kept(everything):
    route = routes()["hybrid_rrf"]
    result = next(r for r in everything.results if r.route == "hybrid_rrf")
    (fusion,) = fusions(result)
    assert as_knobs(route, fusion.span, {"k": 9, "weights.1": 2}) == {"k": 9, "dense_weight": 2.0}
    assert as_knobs(route, fusion.span, {"pool": 9}) is None
    assert as_knobs(route, fusion.span, {"k": 9, "pool": 9}) is None
    with pytest.raises(BadInput, match="from 1 to 1000"):
        as_knobs(route, fusion.span, {"k": 0})
    pair = routes()["step_back"]
    weights = {"weights": [1.0, 1.0, 0.5, 0.5]}
    both = Span(1, None, "fuse", "CHAIN", 0, 0, weights)
    assert as_knobs(pair, both, {"weights.2": 2.0, "weights.3": 2.0}) == {"weight": 2.0}
    assert as_knobs(pair, both, {"weights.2": 2.0}) is None, "the other list would move too"
    assert as_knobs(pair, both, {"weights.2": 0.5}) == {"weight": 0.5}


def test_a_knob_of_another_step_is_not_taken_for_this_one():
    route = routes()["hybrid_rrf"]
    (fusion,) = fusions(by_hand())
    knobs = {"k": 7, "dense_weight": 1.0, "bm25_weight": 1.0}
    found = {control.name: control for control in controls(route, knobs, fusion, ["words", "vectors"])}
    assert found["k"].knob is None
    assert found["weights.0"].knob == "bm25_weight"
    assert found["weights.0"].label == "weight of words"
    assert found["weights.0"].changes(1.0) == {}
    assert found["weights.0"].changes(2.0) == {"weights.0": 2.0}
    assert (found["pool"].low, found["pool"].high, found["pool"].value) == (1, 2, 2)


def test_the_chart_says_what_it_shows():
    result = by_hand()
    (fusion,) = fusions(result)
    passages = {hit.passage.id: hit.passage for hit in result.hits}
    run = Run("x", "", Query("why"), "c", "f", {}, (result,), passages)
    names = list_names(result, fusion, "why")
    after = recompute(fusion, {"weights.0": 3})
    table = rows(fusion, fusion.span.hits, after, shares(fusion, {"weights.0": 3}), {"c": 2}, limit=3)
    figure = share_bars(run, fusion, table, names)
    drawn = [sum(parts) for parts in zip(figure.data[0].x, figure.data[1].x, strict=True)]
    assert drawn == pytest.approx([score for _, score in after])
    assert label(run, table[2]) == "3  <b>C 0–9 ◆2</b>"
    assert label(run, replace(table[0], before=4)) == "1 (was 4)  B 0–9"
    parts = [part for _, part in given_shares(table, names)]
    assert told(table, names) == (
        f"The scores of these 3 passages are made of: {parts[0]:.0%} from search BM25, "
        f"{parts[1]:.0%} from search vectors: “how”."
    )
    assert told([], names) == "No passage has a score that is made of parts."
    assert len(set(colours(fusion))) == 2
    many = replace(fusion, sources=fusion.sources * 8)
    assert len(set(colours(many))) == 16
    assert math.isclose(sum(parts), 1.0)
