"""The route's own clock."""

import threading
import time

import numpy as np
import pytest

from core.trace import Trace, plain
from core.types import Hit, Passage


def test_spans_nest_and_keep_their_order():
    trace = Trace("r")
    with trace.span("outer", "CHAIN", {"text": "q"}), trace.span("inner", "LLM"):
        assert trace.current().name == "inner"
    outer, inner = trace.spans()
    assert (outer.name, outer.parent, inner.parent) == ("outer", None, outer.id)
    assert inner.start_ms >= outer.start_ms
    assert inner.ms <= outer.ms
    assert trace.below(outer.id) == [outer, inner]


def test_reused_work_counts_at_its_full_time():
    trace = Trace("r")
    with trace.span("outer", "CHAIN"):
        with trace.span("shared", "LLM") as shared:
            shared.original_ms = 500.0
        with trace.span("after", "CHAIN"):
            pass
    outer, shared_span, after = trace.spans()
    assert shared_span.ms == pytest.approx(500, abs=0.001)
    assert after.start_ms >= 500
    assert 500 <= outer.ms < 550
    assert 500 <= trace.now() < 600


def test_reused_work_never_makes_a_route_dearer_than_the_work_took():
    trace = Trace("r")
    with trace.span("waited for another route's step", "LLM") as span:
        time.sleep(0.03)
        span.original_ms = 5.0
    assert trace.spans()[0].ms == pytest.approx(5, abs=0.001)
    assert trace.now() < 25


def test_what_is_done_aside_is_no_time_of_the_route():
    trace = Trace("r")
    with trace.span("before", "CHAIN"):
        pass
    with trace.aside():
        time.sleep(0.2)
    with trace.span("after", "CHAIN"):
        pass
    before, after = trace.spans()
    assert after.start_ms - before.start_ms < 150
    assert trace.now() < 150


def test_parallel_branches_cost_the_slowest():
    trace = Trace("r")

    def branch(ms):
        with trace.span("branch", "RETRIEVER") as span:
            span.original_ms = ms
        return ms

    with trace.span("outer", "CHAIN"):
        assert trace.parallel([lambda: branch(300.0), lambda: branch(700.0)]) == [300.0, 700.0]
    outer = trace.spans()[0]
    assert 700 <= outer.ms < 800
    assert all(span.parent == outer.id for span in trace.spans()[1:])


def test_parallel_branches_are_told_one_after_another_whichever_was_quicker():
    trace = Trace("r")
    began = [threading.Event() for _ in range(3)]

    def leaf(name):
        with trace.span(f"inner {name}", "CHAIN"):
            pass

    def branch(index):
        if index < 2:
            began[index + 1].wait(5)  # the last branch begins first
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
        "before", "outer 0", "then 0", "outer 1", "inner a", "inner b", "then 1", "outer 2", "then 2",
        "after",
    ]  # fmt: skip
    assert [span.id for span in trace.spans()] != sorted(span.id for span in trace.spans())


def test_parallel_raises_the_first_branch_error_after_all_ended():
    trace = Trace("r")
    ended = threading.Event()

    def late():
        time.sleep(0.02)
        ended.set()

    def broken():
        raise ValueError("broken branch")

    with pytest.raises(ValueError, match="broken branch"):
        trace.parallel([broken, late])
    assert ended.is_set()


def test_an_error_is_noted_on_its_span_and_those_around_it():
    trace = Trace("r")
    with pytest.raises(KeyError), trace.span("outer", "CHAIN"), trace.span("inner", "LLM"):
        raise KeyError("x")
    assert [span.error for span in trace.spans()] == ["KeyError: 'x'"] * 2


def test_open_spans_can_be_read_and_abandoned():
    trace = Trace("r")
    inside, go = threading.Event(), threading.Event()

    def work():
        with trace.span("slow", "LLM"):
            inside.set()
            go.wait(5)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(5)
    assert trace.spans()[0].ms >= 0
    assert trace.abandon("given up")[0].error == "given up"
    go.set()
    thread.join()


def test_a_continued_trace_goes_on_after_the_stored_one():
    trace = Trace("r", first_id=8, offset_ms=1000)
    with trace.span("later", "LLM"):
        pass
    assert trace.spans()[0].id == 8
    assert trace.spans()[0].start_ms >= 1000


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
