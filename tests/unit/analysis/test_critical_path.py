"""The critical path against hand-worked routes, brute force over random forks, and a real trace."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.critical_path import between_ms, critical, ended, on_path, own_ms
from core.domain.types import RouteResult, Span
from core.steps.trace import Trace


def route(spans, ms=None):
    end = max((s.start_ms + s.ms for s in spans), default=0.0)
    return RouteResult("r", "R", "ok", end if ms is None else ms, spans=tuple(spans))


def span(id, start, ms, parent=None):
    return Span(id, parent, f"step {id}", "TOOL", start, ms)


# A plan is a step's length, or ("then", plans) or ("beside", plans); laid out without any gap between steps.
plans = st.recursive(
    st.integers(1, 50),
    lambda inner: st.tuples(st.sampled_from(["then", "beside"]), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=14,
)


def laid_out(plan, start=0.0, first=1):
    """The plan's spans in the order a trace gives them, and its end."""
    if isinstance(plan, int):
        return [span(first, start, float(plan))], start + plan
    how, parts = plan
    spans, end, at = [], start, start
    for part in parts:
        more, over = laid_out(part, at, first + len(spans))
        spans += more
        end = max(end, over)
        at = over if how == "then" else start
    return spans, end


def chains(plan, first=1):
    """Every chain of step ids through the plan: one branch of each fork."""
    if isinstance(plan, int):
        return [[first]], 1
    how, parts = plan
    found, count = ([[]] if how == "then" else []), 0
    for part in parts:
        some, n = chains(part, first + count)
        count += n
        found = [[*a, *b] for a in found for b in some] if how == "then" else found + some
    return found, count


@given(plans)
def test_the_path_is_the_longest_chain_and_slack_no_more_than_a_step_can_take_longer(plan):
    spans, end = laid_out(plan)
    took, all_chains = {s.id: s.ms for s in spans}, chains(plan)[0]
    path = critical(route(spans))
    assert path.ms == pytest.approx(max(sum(took[id] for id in chain) for chain in all_chains))
    assert path.ms == pytest.approx(end) == pytest.approx(sum(s.ms for s in path.spans))
    for id, spare in path.slack.items():
        longer = max(sum(took[n] + (spare if n == id else 0) for n in chain) for chain in all_chains)
        assert longer <= end + 1e-6


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 100)), max_size=12), st.floats(0, 5))
def test_a_route_without_branches_has_every_step_on_its_path(steps, rest):
    spans, at = [], 0.0
    for n, (gap, ms) in enumerate(steps, 1):
        spans.append(span(n, at + gap, ms))
        at += gap + ms
    path = critical(route(spans, at + rest))
    assert [s.id for s in path.spans] == [s.id for s in spans]
    assert path.slack == {}
    assert path.ms == pytest.approx(sum(ms for _, ms in steps), abs=1e-6)
    assert path.gap == pytest.approx(sum(gap for gap, _ in steps) + rest, abs=1e-6)
    assert between_ms(route(spans, at + rest)) == pytest.approx(path.gap, abs=1e-6)


number = st.floats(allow_nan=True, allow_infinity=True)
anything = st.lists(
    st.tuples(number | st.floats(-10, 1e4), number | st.floats(-10, 1e4), st.integers(0, 6)), max_size=9
)


@given(anything, number)
def test_whatever_was_imported_the_path_fits_into_the_route(given_spans, ms):
    spans = [span(n, start, took, parent or None) for n, (start, took, parent) in enumerate(given_spans, 1)]
    result = RouteResult("r", "R", "ok", ms, spans=tuple(spans))
    path = critical(result)
    assert path.ms <= path.total * (1 + 1e-9) + 1e-6
    assert path.ms + path.gap == pytest.approx(max(path.total, 0.0), abs=1e-5)
    for a, b in pairwise(path.spans):
        assert a.start_ms + a.ms <= b.start_ms + 1e-5
    ids = {s.id for s in path.spans}
    assert ids <= on_path(result)
    assert not ids & set(path.slack)
    assert all(spare >= 0 for spare in path.slack.values())
    assert all(own >= 0 for own in own_ms(result).values())


def test_a_hand_worked_fork():
    spans = [
        span(1, 0, 10),
        span(2, 10, 5),
        span(3, 15, 5),  # one branch, over at 20
        span(4, 10, 30),
        span(5, 12, 20, parent=4),
        span(6, 12, 8, parent=4),  # the other, over at 40
        span(7, 42, 3),
    ]
    result = route(spans, 50)
    path = critical(result)
    assert [s.id for s in path.spans] == [1, 4, 7]
    assert (path.ms, path.gap, path.total) == (43, 7, 50)
    assert path.longest.id == 4
    assert path.share(4) == 0.6
    assert path.slack == {2: 22, 3: 22}  # until the step after the join began, at 42
    assert on_path(result) == {1, 4, 5, 7}
    assert own_ms(result) == {1: 10, 2: 5, 3: 5, 4: 10, 5: 20, 6: 8, 7: 3}
    assert between_ms(result) == 7
    assert ended(route([span(1, 0, 80)], 60)) == 80
    assert critical(route([], 5)).longest is None
    assert critical(route([], 5)).gap == 5


def test_parallel_branches_of_a_real_trace():
    trace = Trace("r")

    def work(name, ms):
        with trace.span(name, "TOOL") as span:
            span.original_ms = ms  # seconds of it, so that what this machine takes makes no difference

    work("first", 2_000)
    trace.parallel(
        [
            lambda: [work("a1", 50_000), work("a2", 50_000)],
            lambda: [work("b1", 600_000), work("b2", 100_000)],
            lambda: [work("c1", 50_000)],
        ]
    )
    work("last", 2_000)
    path = critical(RouteResult("r", "R", "ok", trace.now(), spans=trace.spans()))
    assert [s.name for s in path.spans] == ["first", "b1", "b2", "last"]
    assert {s.name for s in trace.spans() if s.id in path.slack} == {"a1", "a2", "c1"}
