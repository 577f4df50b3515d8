"""The route's own clock, the tree of its spans and their errors; time passes only where a test says so."""

import threading
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from core.domain.errors import Unavailable, describe
from core.domain.types import Hit, Passage
from core.steps import trace as module
from core.steps.trace import Trace, plain


class Clock:
    """The wall's clock, moved by hand."""

    def __init__(self):
        self.seconds = 1000.0

    def __call__(self):
        return self.seconds

    def goes(self, ms):
        """So many milliseconds pass."""
        self.seconds += ms / 1000


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=found))
    return found


@pytest.fixture
def trace(clock):
    """One that began 10 ms ago: nothing in it happens at 0."""
    made = Trace("r")
    clock.goes(5000)
    made.begin()
    clock.goes(10)
    return made


def ms(value):
    return pytest.approx(value, abs=0.001)


def test_spans_nest_and_keep_their_order(trace, clock):
    with trace.span("outer", "CHAIN"):
        clock.goes(2)
        with trace.span("inner", "LLM"):
            assert trace.current().name == "inner"
            clock.goes(3)
        assert trace.current().name == "outer"
        clock.goes(4)
    with pytest.raises(LookupError, match="no step is under way"):
        trace.current()
    outer, inner = trace.spans()
    assert (outer.name, outer.parent, inner.parent) == ("outer", None, outer.id)
    assert (outer.id, inner.id) == (1, 2)
    assert (outer.start_ms, outer.ms, inner.start_ms, inner.ms) == (ms(10), ms(9), ms(12), ms(3))
    assert trace.find(inner.id) == inner


def test_reused_work_counts_at_its_full_time_from_where_it_begins(trace, clock):
    with trace.span("outer", "CHAIN"):
        clock.goes(7)
        with trace.span("shared", "LLM") as shared:
            clock.goes(2)  # to take it over takes a moment, which is none of the route's
            shared.original_ms = 500.0
        clock.goes(3)
        with trace.span("after", "CHAIN"):
            clock.goes(1)
    outer, shared_span, after = trace.spans()
    assert (shared_span.start_ms, shared_span.ms) == (ms(17), 500.0)
    assert (after.start_ms, after.ms) == (ms(520), ms(1))
    assert (outer.start_ms, outer.ms) == (ms(10), ms(511))
    assert trace.now() == ms(521)


def test_reused_work_never_makes_a_route_dearer_than_the_work_took(trace, clock):
    with trace.span("waited for another route's step", "LLM") as span:
        clock.goes(30)
        span.original_ms = 5.0
    assert trace.spans()[0].ms == 5.0
    assert trace.now() == ms(15)


def test_what_is_done_aside_is_no_time_of_the_route(trace, clock):
    with trace.span("before", "CHAIN"):
        clock.goes(2)
        with trace.aside():
            clock.goes(200)
    with suppress(KeyError), trace.aside():
        clock.goes(300)
        raise KeyError
    with trace.span("after", "CHAIN"):
        clock.goes(1)
    before, after = trace.spans()
    assert (before.ms, after.start_ms, after.ms) == (ms(2), ms(12), ms(1))
    assert trace.now() == ms(13)


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_parallel_branches_cost_the_slowest_wherever_it_stands(trace, clock, slow):
    took = [300.0, 400.0, 500.0]
    took[slow] = 700.0

    def branch(ms):
        with trace.span("branch", "RETRIEVER") as span:
            span.original_ms = ms
        return ms

    with trace.span("outer", "CHAIN"):
        clock.goes(4)
        assert trace.parallel([lambda at=at: branch(at) for at in took]) == took
        clock.goes(1)
    outer, *branches = trace.spans()
    assert outer.ms == ms(705)
    assert [(span.parent, span.start_ms, span.ms) for span in branches] == [
        (outer.id, ms(14), at) for at in took
    ]
    assert trace.now() == ms(715)


def test_one_call_alone_runs_in_the_thread_that_asked(trace):
    assert trace.parallel([threading.current_thread]) == [threading.current_thread()]
    assert trace.parallel([]) == []
    assert threading.current_thread() not in trace.parallel([threading.current_thread] * 2)


def test_parallel_branches_are_told_one_after_another_whichever_was_quicker():
    trace = Trace("r")
    began = [threading.Event() for _ in range(3)]

    def leaf(name):
        with trace.span(f"inner {name}", "CHAIN"):
            pass

    def branch(index):
        if index < 2:
            began[index + 1].wait(60)  # the last branch begins first
        with trace.span(f"outer {index}", "RETRIEVER"):
            began[index].set()
            if index == 1:
                trace.parallel([lambda: leaf("a"), lambda: leaf("b")])
        with trace.span(f"then {index}", "CHAIN"):
            pass

    with trace.span("before", "CHAIN"):
        pass
    trace.parallel([lambda i=i: branch(i) for i in range(3)])
    with trace.span("after", "CHAIN"):
        pass
    told = [span.name for span in trace.spans()]
    assert told == [
        "before",
        "outer 0",
        "then 0",
        "outer 1",
        "inner a",
        "inner b",
        "then 1",
        "outer 2",
        "then 2",
        "after",
    ]
    assert [span.id for span in trace.spans()] != sorted(span.id for span in trace.spans())


def test_parallel_raises_the_error_of_the_first_branch_after_all_ended(trace, clock):
    """By their places, not by which failed first."""
    failed, ended = threading.Event(), threading.Event()

    def first():
        assert failed.wait(60)
        with trace.span("first", "LLM") as span:
            span.original_ms = 50.0
            raise ValueError("first branch")

    def second():
        try:
            with trace.span("second", "LLM") as span:
                span.original_ms = 80.0
                raise KeyError("second branch")
        finally:
            failed.set()

    def third():
        assert failed.wait(60)
        ended.set()

    with pytest.raises(ValueError, match="first branch"):
        trace.parallel([first, second, third])
    assert ended.is_set()
    assert [span.error for span in trace.spans()] == ["ValueError: first branch", "KeyError: 'second branch'"]
    assert trace.now() == ms(90), "the time of those that failed counts too"


def test_an_error_is_noted_on_its_span_and_those_around_it_or_as_the_step_says(trace):
    with pytest.raises(KeyError), trace.span("outer", "CHAIN"), trace.span("inner", "LLM"):
        raise KeyError("x")
    with suppress(KeyError), trace.span("other", "CHAIN"), trace.span("own words", "LLM") as inner:
        inner.error = "the endpoint refused"
        raise KeyError("x")
    assert [span.error for span in trace.spans()] == [*["KeyError: 'x'"] * 3, "the endpoint refused"]


def test_errors_are_one_line_each_in_their_own_words_or_by_their_type():
    assert describe(Unavailable("no such\n  model")) == "no such model"
    assert describe(ValueError("two\nlines")) == "ValueError: two lines"
    assert describe(Unavailable()) == "Unavailable"
    assert describe(ValueError()) == "ValueError: ValueError"


def test_open_spans_have_their_time_so_far_and_can_be_abandoned(trace, clock):
    inside, go = threading.Event(), threading.Event()

    def work():
        with trace.span("done", "LLM") as span:
            span.original_ms = 500.0
        with trace.span("outer", "CHAIN"):
            with trace.span("reused", "LLM") as span:
                span.original_ms = 100.0
            with trace.span("slow", "LLM") as span:
                span.error = "it stutters"
                inside.set()
                assert go.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    begun = trace.spans()
    clock.goes(20)
    later, left = trace.spans(), trace.abandon("given up")
    go.set()
    thread.join()
    assert [(span.name, span.ms) for span in begun] == [
        ("done", 500.0),
        ("outer", ms(100)),
        ("reused", 100.0),
        ("slow", ms(0)),
    ]
    assert [span.ms for span in later] == [500.0, ms(120), 100.0, ms(20)]
    assert [span.error for span in left] == [None, "given up", None, "it stutters"]


def test_a_continued_trace_goes_on_after_the_stored_one(clock):
    trace = Trace("r", first_id=8, offset_ms=1000)
    trace.begin()
    clock.goes(3)
    with trace.span("later", "LLM"), trace.span("inside", "LLM"):
        clock.goes(4)
    assert [(span.id, span.start_ms, span.ms) for span in trace.spans()] == [
        (8, ms(1003), ms(4)),
        (9, ms(1003), ms(4)),
    ]


def test_made_names_the_span_of_an_object_and_not_of_an_equal_one():
    trace = Trace("r")
    hit = Hit(Passage("a", "a", "", ""), 1.0)
    trace.remember(hit, 3)
    assert trace.made(hit) == 3
    assert trace.made(Hit(Passage("a", "a", "", ""), 1.0)) is None


def test_plain_leaves_only_json_values():
    value = {
        "v": np.zeros(3, np.float32),
        "n": np.float32(0.5),
        "t": (1, {"x": {2}}),
        "p": Passage("a", "b", "", ""),
    }
    assert plain(value) == {"v": "3 vector", "n": 0.5, "t": [1, {"x": [2]}], "p": "a"}
    assert plain(np.zeros((2, 5))) == "2x5 vector"
    assert plain(Hit(Passage("a", "b", "", ""), 0.25)) == ["a", 0.25]
    assert plain({1: Told(None, (True,))}) == {"1": {"what": None, "also": [True]}}
    assert plain(Told) == str(Told), "a class is no value of it"


@dataclass
class Told:
    what: object
    also: tuple[object, ...]
