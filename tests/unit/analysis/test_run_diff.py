"""Two runs side by side: exactly what differs, in numbers worked by hand and in words."""

from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.analysis.run_diff import (
    MISSING,
    ChangedValue,
    RankingDiff,
    RunRouteDiff,
    StepDiff,
    came_to,
    headline,
    ranking,
    ranking_diff,
    run_diff,
    steps_diff,
    value,
    was,
    why,
)
from core.domain.outputs import Pass, Reply, Rewrite, Waited
from core.domain.types import Hit, Link, Passage, Query, Span, Turn
from tests.runs import make_run
from tests.strategies import some_runs

RUN = make_run(mishaps=False)


def hits(*ids):
    return tuple(Hit(Passage(id, id, "", ""), 1.0 / rank) for rank, id in enumerate(ids, 1))


def change(run, route, **fields):
    """The run with other fields of one route's result."""
    return replace(run, results=tuple(replace(r, **fields) if r.route == route else r for r in run.results))


def span(id, name, kind="CHAIN", **fields):
    return Span(id, None, name, kind, 0.0, 1.0, **fields)


def fused(id, *made, size=2):
    """A step that fused what steps made."""
    return span(id, "fuse", links=tuple(Link(f"lists[{n}]", one, size) for n, one in enumerate(made)))


def mirrored(one):
    """What is to come out with the two runs exchanged."""
    if isinstance(one, RankingDiff):
        counts = {**one.counts, "better": one.counts["worse"], "worse": one.counts["better"]}
        return replace(one, counts={**counts, "new": one.lost}, lost=one.counts["new"])
    if isinstance(one, tuple):
        return tuple(map(mirrored, one))
    if not isinstance(one, ChangedValue | StepDiff | RunRouteDiff):
        return one
    parts = {field.name: mirrored(getattr(one, field.name)) for field in fields(one)}
    if "steps" in parts:
        parts["steps"] = in_any_order(parts["steps"])
    return replace(one, **{**parts, "before": one.after, "after": one.before})


def test_equal_runs_and_waits_for_a_model_are_no_difference():
    slower = replace(
        RUN,
        id="other",
        created="2027-01-01",
        wall_ms=1.0,
        results=tuple(
            replace(r, ms=r.ms + 5, start_ms=9.0, spans=tuple(replace(s, ms=s.ms * 2) for s in r.spans))
            for r in RUN.results
        ),
    )
    found = run_diff(RUN, slower)
    assert found.same
    assert found.equal == 3
    assert (found.asked, found.settings, found.differing) == ((), (), ())
    assert headline(found) == "The two runs differ only in their times."
    wait = Span(99, None, "wait for the model", "CHAIN", 0.0, 0.0, output=Waited(until="it is loaded"))
    waited = replace(wait, output=replace(wait.output, over=True, others_ms=325.6))
    first, *rest = RUN.results
    one, other = (
        replace(RUN, results=(replace(first, spans=(*first.spans, *more)), *rest))
        for more in ((waited,), (replace(waited, output=replace(waited.output, others_ms=198.0)),))
    )
    assert run_diff(one, other).same
    assert run_diff(RUN, one).same
    assert run_diff(one, RUN).same


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(run=some_runs())
def test_any_run_is_the_same_as_itself(run):
    assert run_diff(run, run).same


few = st.sampled_from(["a", "b", "c"])
hits_of_few = st.lists(few, unique=True)


@st.composite
def some_spans(draw, id):
    lists = draw(st.lists(st.none() | st.integers(1, 6), max_size=2))
    made = draw(st.none() | hits_of_few.map(lambda ids: tuple((id, 1.0) for id in ids)))
    parent, shared = draw(st.none() | st.integers(1, 6)), draw(st.none() | st.just("x#1"))
    step = (parent, draw(few), draw(st.sampled_from(["CHAIN", "LLM"])), 0.0, 1.0, {"text": draw(few)})
    links = tuple(Link(f"lists[{n}]", one, 2) for n, one in enumerate(lists))
    return Span(id, *step, Pass(draw(st.none() | few)), made, links, shared_with=shared)


@st.composite
def alike(draw):
    """A run of few names."""
    results = []
    for _ in range(draw(st.integers(0, 3))):
        spans = tuple(draw(some_spans(id)) for id in range(1, draw(st.integers(1, 7))))
        about = {"route": draw(few), "parameters": {"k": draw(st.integers(1, 2))}, "spans": spans}
        about |= {"answer": draw(st.none() | few), "hits": hits(*draw(hits_of_few))}
        results.append(replace(RUN.results[0], **about))
    settings = draw(st.dictionaries(few, few))
    return replace(RUN, results=tuple(results), settings=settings, query=Query(draw(few)))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(one=alike(), other=alike())
def test_exchanging_the_runs_mirrors_the_difference(one, other):
    """Also the alignment of steps, which has ties to break in short traces of few names."""
    there, back = run_diff(one, other), run_diff(other, one)
    assert set(map(mirrored_key, there.settings)) == set(map(key, back.settings))
    assert sorted(map(mirrored_key, there.asked)) == sorted(map(key, back.asked))
    assert (there.only_before, there.only_after) == (back.only_after, back.only_before)
    assert there.equal == back.equal
    assert there.same == back.same
    in_back = {id(route.before): route for route in back.routes}
    for route in there.routes:
        other_way = in_back[id(route.after)]
        assert repr(mirrored(route)) == repr(replace(other_way, steps=in_any_order(other_way.steps)))
        assert [step.before for step in route.steps if step.before] == list(route.before.spans)
        assert sorted(s.after.id for s in route.steps if s.after) == [s.id for s in route.after.spans]


def in_any_order(steps):
    return tuple(sorted(steps, key=repr))


def key(one):
    return (one.name, repr(one.before), repr(one.after))


def mirrored_key(one):
    return key(mirrored(one))


def test_one_parameter_changed_is_exactly_that():
    first, second = (
        change(RUN, "bm25", parameters={"k": 60, "b": 1}),
        change(RUN, "bm25", parameters={"k": 10, "b": 1}),
    )
    found = run_diff(first, second)
    (route,) = found.differing
    assert route.parameters == (ChangedValue("k", 60, 10),)
    assert (route.result, route.ranking.same, route.same_result) == ((), True, True)
    assert all(step.same for step in route.steps)
    assert (found.asked, found.settings) == ((), ())
    assert headline(found) == (
        "Asked: the same question. Settings: the same. Of 8 routes in both runs 0 gave a different result. "
        "1 differ only in parameters or steps."
    )
    assert (why(found, route), came_to(route)) == ("because `k` was 60 and is 10", "same result")


def test_what_was_asked_and_settings_that_differ_are_told_once():
    first = replace(RUN, settings={"llm": "a", "routes": ["x"], "timing": "shared"})
    second = replace(RUN, settings={"llm": "b", "routes": ["y"], "timing": "shared", "session": "s"})
    found = run_diff(first, second)
    assert found.settings == (ChangedValue("llm", "a", "b"), ChangedValue("session", MISSING, "s"))
    assert found.equal == 1
    assert "Settings: `llm` was a and is b; `session` was not set and is s." in headline(found)
    second = replace(RUN, query=Query("Another?", ()), corpus="web", fingerprint="f2")
    found = run_diff(RUN, second)
    assert [one.name for one in found.asked] == ["question", "history", "corpus", "fingerprint"]
    assert headline(found).startswith(
        "Asked: the question differs; the conversation before it differs; `corpus` was support and is web; "
    )
    said = run_diff(RUN, replace(RUN, query=replace(RUN.query, history=(Turn("user", "Hi"),))))
    assert [one.name for one in said.asked] == ["history"]


def test_routes_of_one_run_alone_are_listed_and_a_route_twice_is_two():
    first, second = replace(RUN, results=RUN.results[:3]), replace(RUN, results=RUN.results[2:5])
    found = run_diff(first, second)
    assert [r.route for r in found.only_before] == ["bm25", "dense"]
    assert [r.route for r in found.only_after] == ["hybrid_linear", "rewrite"]
    assert (
        "Only in the first run: BM25, Dense. Only in the second run: Hybrid (linear), Rewrite + hybrid."
        in headline(found)
    )
    twice = replace(RUN, results=(RUN.results[0], RUN.results[0]))
    assert [r.route for r in run_diff(twice, first).only_before] == ["bm25"]


def test_rankings_by_hand():
    """b and c change places, d goes, e comes: 1 same, 1 better, 1 worse, 1 new; 3 of 5 passages in both."""
    found = ranking_diff(hits("a", "b", "c", "d"), hits("a", "c", "b", "e"))
    assert found.counts == {"better": 1, "worse": 1, "same": 1, "new": 1}
    assert (found.lost, found.first, found.scores) == (1, 2, 2)
    assert found.overlap == pytest.approx(3 / 5)
    assert ranking(found) == (
        "top 10: 1 better, 1 worse, 1 new, 1 lost; first difference at rank 2; Jaccard@10 0.60"
    )
    longer = ranking_diff(hits(*"abcdefghijk"), hits(*"abcdefghijkl"))
    assert (longer.first, longer.lost, longer.overlap, longer.same) == (12, 0, 1.0, False)
    assert ranking(longer).startswith("same top 10; first difference at rank 12")
    assert ranking_diff((), ()).same
    assert ranking_diff((), hits("a")).overlap == 0.0
    one = (Hit(Passage("a", "a", "", ""), 0.5), Hit(Passage("b", "b", "", ""), float("nan")))
    near = (replace(one[0], score=0.5 + 1e-9), one[1])
    far = (replace(one[0], score=0.51), one[1])
    assert ranking_diff(one, near).same
    assert (ranking_diff(one, far).scores, ranking_diff(one, far).first) == (1, None)
    assert ranking(ranking_diff(one, far)) == "same order, different scores for 1 passages"


def test_steps_are_aligned_whatever_was_added_or_came_in_another_order():
    before = [span(1, "search"), span(2, "embed", "EMBEDDING"), fused(3, 1, 2)]
    after = [
        span(1, "rewrite", "LLM", output=Rewrite("words", ("new words",), "question")),
        span(2, "search", args={"text": "new words"}),
        span(3, "embed", "EMBEDDING"),
        fused(4, 2, 3),
    ]
    found = steps_diff(before, after)
    assert [(s.before and s.before.name, s.after and s.after.name) for s in found] == [
        (None, "rewrite"),
        ("search", "search"),
        ("embed", "embed"),
        ("fuse", "fuse"),
    ]
    assert [step.same for step in found] == [False, False, True, True]  # fused were the same lists
    assert found[1].inputs == (ChangedValue("text", MISSING, "new words"),)
    before = [span(1, "search", hits=(("a", 1.0), ("b", 0.5))), span(2, "embed"), fused(3, 1, 2)]
    after = [before[0], span(2, "other"), fused(3, 1, 2)]
    assert steps_diff(before, before)[2].same
    assert steps_diff(before, [*before[:2], fused(3, 1, 1)])[2].inputs == (
        ChangedValue("lists[1]", "embed", "search, ranks 1 to 2"),
    )
    found = steps_diff(before, after)
    assert [step.same for step in found] == [True, False, False, False]
    assert found[3].inputs == (ChangedValue("lists[1]", "embed", "other"),), (
        "step 2 of both, but not the same step"
    )
    before = [
        span(1, "search", args={"text": "a"}),
        span(2, "embed"),
        span(3, "search", args={"text": "b"}),
    ]
    after = [replace(before[2], id=1), replace(before[0], id=2), replace(before[1], id=3)]
    found = steps_diff([*before, fused(4, 1, 3)], [*after, fused(4, 2, 1)])
    assert [step.same for step in found] == [True] * 4
    assert [step.before.id for step in found] == [1, 2, 3, 4]
    assert [step.after.id for step in found] == [2, 3, 1, 4]


def test_another_part_of_a_list_or_one_made_by_hand_is_a_difference():
    search, step = span(1, "search", hits=(("a", 1.0), ("b", 0.5))), fused(2, 1, 1)
    for link, said in (
        (Link("lists[1]", 1, 1), "search, rank 1"),
        (Link("lists[1]", 1, 2, 1), "search, ranks 2 to 3"),
        (Link("lists[1]", None, 2), "made by the route's own code"),
        (None, MISSING),
    ):
        other = replace(step, links=(step.links[0], link) if link else step.links[:1])
        (change_,) = steps_diff([search, step], [search, other])[1].inputs
        assert change_ == ChangedValue("lists[1]", "search, ranks 1 to 2", said)


def test_work_that_another_route_did_has_its_steps_there():
    ask = replace(span(2, "ask", "LLM", args={"text": "q"}), parent=1)
    alone = [span(1, "rewrite", "LLM", output=Reply("x")), ask]
    shared = [span(1, "rewrite", "LLM", output=Reply("x"), shared_with="hyde#1")]
    found = steps_diff(alone, shared)
    assert [(step.same, step.elsewhere) for step in found] == [(True, False), (True, True)]
    lost = steps_diff(alone, [replace(shared[0], shared_with=None)])
    assert [(step.same, step.elsewhere) for step in lost] == [(True, False), (False, False)]


def test_values_and_lists_in_a_sentence_are_short_and_on_one_line():
    assert was(ChangedValue("answered", ["a", "b"], ["b", "c", "d"])) == "`answered` lost a and gained c, d"
    assert was(ChangedValue("x", [1, 2], [2, 1])) == "`x` was [1, 2] and is [2, 1]"
    assert was(ChangedValue("x", [], list("abcdefg"))) == "`x` gained a, b, c, d, e and 2 more"
    assert (value(MISSING), value(""), value(None), value([1, 2])) == ("not set", "empty", "null", "[1, 2]")
    assert value("a\nb" + "x" * 100) == "a b" + "x" * 56 + "…"


def test_the_first_step_that_came_to_something_else_is_the_reason():
    rewrite = next(r for r in RUN.results if r.route == "rewrite")
    spans = tuple(
        replace(s, output=Pass("What about the second vase?"))
        if s.id == 1
        else replace(s, output=replace(s.output, made="2026-11-19"))
        if isinstance(s.output, Reply)
        else s
        for s in rewrite.spans
    )
    found = run_diff(RUN, change(RUN, "rewrite", spans=spans, status="failed", error="E", hits=()))
    (route,) = found.differing
    apart = next((step for step in route.steps if not step.same), None)
    assert apart.output.after == Pass("What about the second vase?")
    assert [step for step in route.steps if not step.same] == [apart]  # when a call was made is no difference
    said = "from step 1, “rewrite as a standalone question”, same input, different result"
    assert why(found, route) == said
    assert came_to(route) == "`status` was ok and is failed: E"
    assert (route.ranking.lost, route.ranking.first) == (10, 1)
    found = run_diff(change(RUN, "bm25", answer="Yes."), change(RUN, "bm25", answer="No.", citations=("a",)))
    (route,) = found.differing
    assert route.result == (ChangedValue("answer", "Yes.", "No."), ChangedValue("citations", (), ("a",)))
    assert (came_to(route), why(found, route)) == ("different answer", "though no step differs")
