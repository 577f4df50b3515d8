"""Percentiles over runs and where one run's time went, against pandas and numpy and by hand."""

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.critical_path import between_ms, by_kind, clocks, sources
from core.analysis.critical_path import by_step as spent_by_step
from core.analysis.timeline import (
    NEEDED,
    against,
    by_route,
    by_step,
    lead,
    origin,
    path_in_words,
    percentiles,
    sessions_in_words,
    spent_in_words,
    usage,
    wall_in_words,
)
from core.domain.types import RouteResult, Span, Tokens
from core.store.search import Traces
from tests.runs import make_run
from ui.charts.percentiles import ROWS_SHOWN, range_plot

RUN = make_run(mishaps=False)
BAD = make_run()
ms = st.floats(0, 1e6)


def took(route, ms, *, cached=None, **more):
    spans = (Span(1, None, "search", "RETRIEVER", 0, ms, cached=cached),)
    return RouteResult(route, route.upper(), "ok", ms, spans=spans, **more)


@given(st.lists(ms, min_size=1, max_size=150))
def test_percentiles_are_those_of_pandas(values):
    known = pd.Series(values)
    for p, value in percentiles(values).items():
        if len(values) < NEEDED[p]:
            assert value is None
        else:
            assert value == pytest.approx(known.quantile(p / 100))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "cache", "recording"]), ms)))
def test_routes_are_told_apart_by_where_their_time_is_from(given_times):
    runs = [[took(name, value, cached=cached)] for name, cached, value in given_times]
    frame = pd.DataFrame(
        [(name, cached or "now", value) for name, cached, value in given_times],
        columns=["key", "source", "ms"],
    )
    grouped = frame.groupby(["key", "source"]).ms
    found = by_route(runs)
    assert {(one.key, one.source): one.n for one in found} == grouped.size().to_dict()
    assert {(one.key, one.source): one.at[50] for one in found} == pytest.approx(grouped.median().to_dict())
    assert {(one.key, one.source): one.largest for one in found} == grouped.max().to_dict()
    assert [one.at[50] for one in found] == sorted((one.at[50] for one in found), reverse=True)


def test_runs_with_an_answer_are_apart_and_steps_count_where_they_were_done():
    runs = [
        [took("a", 1.0), took("a", 900.0, answer="Yes.")],
        [replace(took("a", 5.0), status="failed"), replace(took("a", 5.0), status="unavailable")],
        [took("a", float("nan"))],
    ]
    assert {(one.name, one.n, one.largest) for one in by_route(runs)} == {
        ("A", 1, 1.0),
        ("A · with answer", 1, 900.0),
    }
    spans = (
        Span(1, None, "embed", "EMBEDDING", 0, 3.0),
        Span(2, None, "embed", "EMBEDDING", 3, 3.0, shared_with="b#1"),
        Span(3, None, "write", "LLM", 6, 40.0),
        Span(4, 3, "ask m", "LLM", 6, 39.0, cached="cache"),
        Span(5, None, "search", "RETRIEVER", 46, 2.0, error="ValueError: no"),
    )
    result = RouteResult("a", "A", "failed", 48, spans=spans)
    assert {(one.name, one.n, one.largest) for one in by_step([[result]])} == {
        ("embed", 1, 3.0),
        ("write · from the cache", 1, 40.0),
        ("ask m · from the cache", 1, 39.0),
    }
    assert sources(result) == {1: "now", 2: "now", 3: "cache", 4: "cache", 5: "now"}
    assert origin(result) == "cache"
    recorded = replace(result, spans=(*spans, Span(6, None, "x", "LLM", 48, 1, cached="recording")))
    assert origin(recorded) == "recording"

    def asked(prompt, calls=1):
        span = Span(1, None, "ask", "LLM", 0, 5, tokens=Tokens(prompt, 10), calls=calls)
        return RouteResult("a", "A", "ok", 5, spans=(span,))

    (one, quiet) = usage(
        [[asked(100), took("b", 1, answer="Yes.")], [asked(300, 3)], [replace(asked(9), status="failed")]]
    )
    assert (one.route, one.runs, one.calls, one.prompt, one.completion) == ("a", 2, 2.0, 200.0, 10.0)
    assert (quiet.route, quiet.calls, quiet.answered, one.answered) == ("b", 0, 1, 0)


def test_every_distinct_piece_of_work_counts_once():
    own = {}  # by (kind, source), from the run as it was made by hand
    for result in RUN.results:
        for span in result.spans:
            if span.shared_with:
                continue
            inner = max((s.ms for s in result.spans if s.parent == span.id), default=0.0)  # begin at one time
            key = (span.kind, span.cached or "now")
            own[key] = own.get(key, 0.0) + max(0.0, span.ms - inner)
    found = {
        (one.kind, source): ms for one in by_kind(RUN) if one.kind for source, ms in one.ms.items() if ms
    }
    assert found == pytest.approx({key: ms for key, ms in own.items() if ms})
    named = {(one.kind, one.name): one.total for one in spent_by_step(RUN)}
    assert sum(named.values()) == pytest.approx(sum(own.values()))
    assert named["RETRIEVER", "search BM25"] == pytest.approx(
        1.4 * 3
    )  # bm25, rewrite, rag_fusion; not hybrids
    slower = replace(RUN, results=(replace(RUN.results[0], ms=2.0),))
    between = next(one for one in by_kind(slower) if one.kind is None)
    assert between.total == pytest.approx(between_ms(slower.results[0])) == pytest.approx(0.6)
    ran = [r for r in BAD.results if r.status != "unavailable"]
    assert (clocks(BAD).alone, clocks(BAD).wall) == (pytest.approx(sum(r.ms for r in ran)), BAD.wall_ms)
    rest = replace(RUN, results=RUN.results[2:4])  # both took BM25, the embedding and vectors over
    assert sum(one.total for one in spent_by_step(rest)) == pytest.approx(1.4 + 3.1 + 2.2 + 2 * 0.2)


def test_the_lead_names_the_quickest_the_slowest_and_what_it_waits_for():
    first, kinds, wall = lead(RUN)
    assert first == (
        "BM25 is the fastest route alone, 1.4 ms. CRAG is the slowest route alone, 5.2 s. "
        "“grade and decide” takes >99% of 5.2 s."
    )
    assert "language model in 3" in kinds
    alone = "the times of its routes alone add up to 12.0 s."
    assert wall.startswith(f"The run took {RUN.wall_ms / 1000:.1f} s; {alone}")
    assert lead(replace(RUN, results=())) == []
    ran = replace(RUN, settings={"routes ran": "side by side"})
    assert "The routes ran side by side." in wall_in_words(ran)
    assert "ran" not in wall_in_words(replace(RUN, settings={"routes ran": ["odd"]}))


def test_where_the_time_went_in_words():
    told = spent_in_words(by_kind(RUN))
    total = sum(one.total for one in by_kind(RUN))
    model = next(one.total for one in by_kind(RUN) if one.kind == "LLM")
    assert f"{model / total:.0%} language model" in told
    assert "3.6 s of it came from the cache" in told
    assert spent_in_words([]) == "No step in this run took any time."
    spans = (Span(1, None, "slow", "TOOL", 0, 60.0), Span(2, None, "quick", "TOOL", 0, 20.0))
    result = RouteResult("a", "Tables", "ok", 80.0, spans=spans)
    told = "“slow” takes 75% of 80 ms. Steps off the critical path: 1, with up to 60 ms of slack."
    assert path_in_words(result) == told  # the route ends at 80
    assert path_in_words(replace(result, spans=())) == "Tables recorded no step."


def test_what_sessions_tell_says_what_it_rests_on():
    rows = by_route(
        [[took("a", 1.0 * n), took("b", 9.0, cached="recording"), took("c", 3.0)] for n in range(1, 31)]
    )
    said = sessions_in_words(Traces(30, 45, {}, 4), rows)
    assert said[0] == "A (16 ms) has the longest median and C (3.0 ms) the shortest."
    assert said[1].startswith("From the newest 30 of 45 runs. Leaves out 4 results of imported runs")
    assert said[2] == "Rows from the cache or recordings, with the original times: 1."
    hidden = sessions_in_words(Traces(30, 30, {}, 0), [one for one in rows if one.source == "now"], 1)
    assert hidden[2].endswith("1, not shown here.")
    assert len(said) == 3  # 30 measurements are enough for a 95th percentile
    assert (
        "1 of 1 have fewer than 20" in sessions_in_words(Traces(1, 1, {}, 0), by_route([[took("a", 1)]]))[-1]
    )


def test_a_route_far_from_its_median_is_told():
    rows = by_route([[took("a", 10.0)]] * 5)
    run = replace(RUN, results=(took("a", 35.0),))
    assert against(run, rows) == "In this run A took 35 ms, 3.5 times its median of 10 ms."
    assert against(replace(RUN, results=(took("a", 12.0),)), rows) == ""
    assert against(replace(RUN, results=(took("a", 35.0, answer="Yes."),)), rows) == ""
    assert against(replace(RUN, results=(took("a", 35.0, cached="cache"),)), rows) == ""
    assert against(run, by_route([[took("a", 10.0)]] * 4)) == ""


def test_the_range_ends_at_p95_or_the_largest_and_takes_hostile_names():
    many = [[took("a", float(n))] for n in range(1, 41)]
    few = [[took("b", 5.0)], [took("b", 7.0)]]
    figure = range_plot(by_route(many + few))
    marks = {one.name: one for one in figure.data if one.mode == "markers"}
    assert list(marks["median"].x) == [20.5, 6.0]
    assert list(marks["95th percentile"].x) == pytest.approx([38.05])
    assert list(marks["largest of fewer than 20"].x) == [7.0]
    assert "40 measured" in marks["95th percentile"].customdata[0][1]
    assert list(figure.layout.yaxis.ticktext) == ["A", "B"]
    runs = [[took(f"<img src=x>{n}", 0.0)] for n in range(ROWS_SHOWN + 5)]
    figure = range_plot(by_route(runs))
    assert len(figure.layout.yaxis.ticktext) == ROWS_SHOWN
    assert "<img" not in figure.to_json()
    assert min(x for one in figure.data for x in one.x) > 0  # a log axis
    assert range_plot([]).layout.height > 0
    narrow = range_plot(by_route([[took("a", 5.0), took("b", 40.0, answer="Yes.")]]))
    assert {"5.0 ms", "20 ms", "50 ms", "100 ms"} <= set(narrow.layout.xaxis.ticktext)
    assert list(narrow.layout.yaxis.ticktext) == ["B · with answer", "A"]
