"""Fusion done again from stored lists: the same as the run, and the same as a new run with other
parameters.
"""

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.what_if.fusion import (
    arrow,
    counterpart,
    fusions,
    list_names,
    moved,
    outcome,
    recompute,
    rows,
    shares,
)
from core.analysis.what_if.fusion import given as given_shares
from core.analysis.what_if.parameters import as_parameters, controls, sets
from core.domain.errors import BadInput
from core.domain.outputs import Embedding, Rerank, Search, Selection, Written
from core.domain.outputs import Fusion as Fused
from core.domain.types import Hit, Link, Passage, Query, RouteResult, Run, Span, Turn
from core.engine.request import Request
from core.routes.registry import routes
from core.store.codec import dumps, from_document, to_document
from tests.fakes import FakeEngine, ScriptedLLM
from ui.charts.bars import colours, describe_shares, label, share_bars

WORDS = ("parcel", "fragile", "refund", "customs", "express", "box", "photo", "claim", "vase", "return")
QUESTION = Query(
    "How do I return a fragile vase and claim the refund?",
    (Turn("user", "My parcel with the vase arrived crushed."), Turn("assistant", "Take a photo.")),
)
TUNED = {  # routes whose parameters set their last fusion
    "contextual": ("alpha",),
    "contextual_headings": ("alpha",),
    "hybrid_linear": ("alpha", "norm"),
    "hybrid_rrf": ("k", "dense_weight", "bm25_weight"),
    "memory": ("memory_weight",),
    "mmr": ("lam", "pool", "k"),
    "multistage": ("lam",),
    "parent": ("alpha",),
    "rag_fusion": ("k",),
    "rewrite": ("weight",),
    "step_back": ("weight", "k"),
}
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


def one(engine, route, parameters):
    result = engine.ask(Request(QUESTION, "tiny", (route,), {route: parameters}, stored=False)).results[0]
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
                told_ = {one.id: one.score for one in fusion.span.output.chosen}
                assert {id: sum(both) for id, both in parts.items()} == pytest.approx(told_)
            else:
                assert {id: sum(part, 0.0) for id, part in parts.items()} == dict(fusion.span.hits)
                for id, part in parts.items():
                    for ranking, share in zip(fusion.lists, part, strict=True):
                        assert share == 0 or id in {hit.passage.id for hit in ranking}


def value_of(parameter, draw):
    if parameter.choices:
        return draw(st.sampled_from(parameter.choices))
    if parameter.type is int:
        return draw(st.integers(int(parameter.low), int(parameter.high)))
    low = 0.1 if parameter.name.endswith("weight") else parameter.low  # with 0 some lists are not searched
    high = 0.99 if parameter.tunes == "alpha" else parameter.high
    return round(draw(st.floats(low, high)), 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TUNED))
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_other_parameters_give_what_a_new_run_gives(engine, name, data):
    route, on = routes()[name], ON.get(name, {})
    first = one(engine, name, on)
    own = [parameter for parameter in route.parameters if parameter.name in TUNED[name]]
    assert len(own) == len(TUNED[name])
    fusion = next(one for one in reversed(fusions(first)) if one.span.set_by)
    wanted = {parameter.name: value_of(parameter, data.draw) for parameter in own}
    changes = {
        name: value
        for parameter in own
        for name, value in sets(parameter, fusion.span, wanted[parameter.name]).items()
    }
    again = one(engine, name, {**on, **wanted})
    made = outcome(first, fusion, recompute(fusion, changes))
    assert made.hits == tuple((hit.passage.id, hit.score) for hit in again.hits)
    kept = as_parameters(route, fusion.span, changes)
    assert kept == wanted
    moved_ = {control.parameter: control for control in controls(route, fusion, [])}
    for parameter in own:
        control = moved_[parameter.name]
        assert control.changes(wanted[parameter.name]) in (
            {},
            sets(parameter, fusion.span, wanted[parameter.name]),
        )
        assert control.low != 0 or "weights.2" not in control.names


def test_what_a_parameter_tunes_is_what_it_sets_of_a_step(everything, engine):
    """What a route declares, for pages that have no trace at hand, is what its steps record."""
    traced = {result.route: result for result in everything.results}
    traced |= {name: one(engine, name, on) for name, on in ON.items()}
    recorded = {
        (name, parameter, argument.partition(".")[0])
        for name, result in traced.items()
        for span in result.spans
        for argument, parameter in span.set_by.items()
    }
    missing = []
    for name, route in routes().items():
        for parameter in route.parameters:
            argument = "weights" if parameter.tunes == "alpha" else parameter.tunes
            if argument and (name, parameter.name, argument) not in recorded:
                missing.append((name, parameter.name, parameter.tunes))
    assert missing == []


def test_a_pool_cuts_the_lists_before_they_are_fused_and_steps_after_are_stale():
    result = by_hand()
    (fusion,) = fusions(result)
    assert recompute(fusion, {"pool": 1}) == (("a", 1 / 61), ("b", 1 / 61))
    assert recompute(fusion, {"pool": 1, "weights.1": 2}) == (("b", 2 / 61), ("a", 1 / 61))
    assert outcome(result, fusion, fusion.span.hits).stale == ()
    answer = Span(5, None, "write answer", "LLM", 4, 1, {}, Written("So."))
    written = replace(result, spans=(*result.spans, answer))
    made = outcome(written, fusion, fusion.span.hits)
    assert made.hits == fusion.span.hits
    assert made.stale == (answer,)
    again = replace(answer, name="rerank", kind="RERANKER", output=Rerank(), hits=fusion.span.hits)
    reranked = replace(result, spans=(*result.spans, again), origin=Link("hits", 5, 3))
    assert outcome(reranked, fusion, fusion.span.hits).hits is None, "even where it moved nothing"
    assert outcome(replace(result, origin=Link("hits", None, 3)), fusion, fusion.span.hits).hits is None
    cut = replace(result, hits=result.hits[1:2], origin=Link("hits", 4, 1, 1))
    assert (
        outcome(cut, fusion, recompute(fusion, {"weights.1": 9})).hits
        == (recompute(fusion, {"weights.1": 9})[1:2])
    )
    (fusion,) = fusions(by_hand())
    other = by_hand()
    assert counterpart(other, fusion, ranks=True).span == other.spans[-1]
    three = by_hand([1, 3, Link("", None, 0)], weights=[1.0, 1.0, 1.0])
    assert fusions(three)[0].lack == ""
    assert counterpart(three, fusion, ranks=True) is None
    assert counterpart(replace(other, origin=Link("hits", 3, 2)), fusion, ranks=True) is None


def linked(*sources):
    """Links of lists: a span with its first two passages, or a whole link."""
    return tuple(
        replace(one, arg=f"lists[{n}]") if isinstance(one, Link) else Link(f"lists[{n}]", one, 2)
        for n, one in enumerate(sources)
    )


def by_hand(lists=(1, 3), **args):
    """BM25 found a, b; vectors b, c; fused with k = 60."""
    sparse, dense = (("a", 5.0), ("b", 4.0)), (("b", 0.9), ("c", 0.8))
    fused = (("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62))
    args = {"k": 60, "weights": [1.0, 1.0], **args}
    spans = (
        Span(1, None, "search BM25", "RETRIEVER", 0, 1, {"text": "why"}, Search(("why",)), sparse),
        Span(2, None, "embed", "EMBEDDING", 1, 1, {"text": "how"}, Embedding(("how",))),
        Span(3, None, "search vectors", "RETRIEVER", 2, 1, {}, Search(), dense, (Link("vector", 2, 3),)),
        Span(4, None, "fuse by reciprocal rank", "CHAIN", 3, 1, args, Fused("rrf"), fused, linked(*lists)),
    )
    hits = tuple(Hit(Passage(id, id, id.upper(), "", 0, 9), score) for id, score in fused)
    return RouteResult("r", "R", "ok", 4.0, hits=hits, spans=spans, origin=Link("hits", 4, 3))


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
        ("b", 1, 1, (2, 1), 0),
        ("a", 2, 2, (1, None), 0),
        ("c", 3, 3, (None, 2), 2),
    ]
    assert table[0].shares == (3 / 62, 1 / 61)
    total = sum(score for _, score in after)
    assert given_shares(table, names) == [
        (names[0], pytest.approx((3 / 62 + 3 / 61) / total)),
        (names[1], pytest.approx((1 / 61 + 1 / 62) / total)),
    ]
    assert moved(fusion.span.hits, after, {"c": 1, "x": 3, "a": 0}) == [("x", None, None), ("c", 3, 3)]
    said = [arrow(*ranks) for ranks in ((7, 3), (3, 3), (None, None), (4, None), (None, 2))]
    assert said == ["7 → 3", "3, as before", "not ranked", "4 → gone", "not ranked → 2"]


def test_a_list_that_the_route_made_itself_is_not_guessed_and_wrong_settings_are_refused():
    (fusion,) = fusions(by_hand([1, Link("", None, 2)]))
    assert (
        fusion.lack == "list 2 was made by the route's own code, not by a step, so the run does not store it"
    )
    with pytest.raises(BadInput, match="cannot be recomputed: list 2"):
        recompute(fusion, {})
    (fusion,) = fusions(by_hand())
    with pytest.raises(BadInput, match=r"has no 'lam'; it has: k, weights\.0, weights\.1, pool"):
        recompute(fusion, {"lam": 0.5})
    with pytest.raises(BadInput, match="RRF k is -1"):
        recompute(fusion, {"k": -1})


def test_parts_of_lists_and_empty_lists_are_fused_as_they_were():
    """Of each list the part that the route passed on, also where another list is equal to it."""
    part = by_hand([Link("", 1, 1, 1), Link("", 3, 1)])
    fused = (("b", 1 / 61 + 1 / 61),)
    part = replace(part, spans=(*part.spans[:3], replace(part.spans[3], hits=fused)))
    (fusion,) = fusions(part)
    assert fusion.lack == ""
    assert [[hit.passage.id for hit in ranking] for ranking in fusion.lists] == [["b"], ["b"]]
    assert recompute(fusion, {"weights.1": 2}) == (("b", 1 / 61 + 2 / 61),)
    assert list_names(part, fusion, "why") == (
        "search BM25, ranks 2 to 2",
        "search vectors: “how”, the first 1",
    )
    nothing = replace(by_hand([Link("", None, 0), 3]).spans[3], hits=(("b", 1 / 61), ("c", 1 / 62)))
    one_empty = by_hand()
    one_empty = replace(one_empty, spans=(*one_empty.spans[:3], nothing))
    (fusion,) = fusions(one_empty)
    assert (fusion.lack, [len(ranking) for ranking in fusion.lists]) == ("", [0, 2])
    assert recompute(fusion, {"weights.1": 2}) == (("b", 2 / 61), ("c", 2 / 62))
    names = list_names(one_empty, fusion, "why")
    assert names[0] == "an empty list"
    assert [c.name for c in controls(None, fusion, names)] == ["weights.0", "weights.1", "k", "pool"]
    none = replace(nothing, hits=(), links=(Link("lists", None, 0),), args={"k": 60, "weights": None})
    (fusion,) = fusions(replace(one_empty, spans=(none,), hits=(), origin=None))
    assert (fusion.lack, recompute(fusion, {"k": 9}), shares(fusion, {})) == ("", (), {})
    assert [control.name for control in controls(None, fusion, ["nothing"])] == ["weights.0", "k"]


def test_what_does_not_give_the_stored_ranking_is_not_trusted():
    wrong = ({"k": 61}, {"k": None}, {"weights": [1.0, 2.0]}, {"k": "60"}, {"weights": [1.0]})
    for lists, args in (((1, 1), {}), ((3, 3), {}), *(((1, 3), args) for args in wrong)):
        (fusion,) = fusions(by_hand(lists, **args))
        assert fusion.lack == "its stored lists do not reproduce its ranking", (lists, args)


def test_a_diversity_step_without_its_scores_says_why_it_cannot_be_tried(engine):
    result = one(engine, "mmr", {})
    bare = replace(result.spans[-1], output=Selection("mmr", result.spans[-1].output.chosen))
    (fusion,) = fusions(replace(result, spans=(*result.spans[:-1], bare)))
    assert "scores are not stored" in fusion.lack


def test_only_what_parameters_set_can_be_kept(everything):
    route = routes()["hybrid_rrf"]
    result = next(r for r in everything.results if r.route == "hybrid_rrf")
    (fusion,) = fusions(result)
    assert as_parameters(route, fusion.span, {"k": 9, "weights.1": 2}) == {"k": 9, "dense_weight": 2.0}
    assert as_parameters(route, fusion.span, {"pool": 9}) is None
    assert as_parameters(route, fusion.span, {"k": 9, "pool": 9}) is None
    with pytest.raises(BadInput, match="from 1 to 1000"):
        as_parameters(route, fusion.span, {"k": 0})
    pair = routes()["step_back"]
    set_by = {"weights.2": "weight", "weights.3": "weight"}
    both = Span(1, None, "fuse", "CHAIN", 0, 0, {"weights": [1.0, 1.0, 0.5, 0.5]}, set_by=set_by)
    assert as_parameters(pair, both, {"weights.2": 2.0, "weights.3": 2.0}) == {"weight": 2.0}
    assert as_parameters(pair, both, {"weights.2": 2.0}) is None, "the other list would move too"
    assert as_parameters(pair, both, {"weights.3": 2.0}) is None
    assert as_parameters(pair, both, {"weights.2": 0.5}) == {"weight": 0.5}
    shared = routes()["hybrid_linear"]
    half = replace(both, args={"weights": [0.5, 0.5]}, set_by={"weights.1": "alpha"})
    assert as_parameters(shared, half, {"weights.0": 1 - 0.7, "weights.1": 0.7}) == {"alpha": 0.7}
    assert as_parameters(shared, half, {"weights.1": 0.7}) is None, "the other list gets what is left of 1"


def test_a_parameter_of_another_step_is_not_taken_for_this_one():
    """The step's k is 60, as is the route's, which set nothing of it."""
    route = routes()["hybrid_rrf"]
    result = by_hand()
    spans = (*result.spans[:3], replace(result.spans[3], set_by={"weights.0": "bm25_weight"}))
    (fusion,) = fusions(replace(result, spans=spans))
    found = {control.name: control for control in controls(route, fusion, ["words", "vectors"])}
    assert (found["k"].parameter, found["weights.1"].parameter) == (None, None)
    assert found["weights.0"].parameter == "bm25_weight"
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
    figure = share_bars(fusion, table, names, lambda id: run.passages[id].title)
    drawn = [sum(parts) for parts in zip(figure.data[0].x, figure.data[1].x, strict=True)]
    assert drawn == pytest.approx([score for _, score in after])
    assert label(table[2], "C") == "3  <b>C ◆2</b>"
    assert label(replace(table[0], before=4), "B") == "1 (was 4)  B"
    parts = [part for _, part in given_shares(table, names)]
    assert describe_shares(table, names) == (
        f"Composition of the scores of these 3 passages: {parts[0]:.0%} from search BM25, "
        f"{parts[1]:.0%} from search vectors: “how”."
    )
    assert describe_shares([], names) == "No passage has a score that is a sum of parts."
    assert len(set(colours(replace(fusion, sources=fusion.sources * 8)))) == 16
