"""The waterfall: every bar stands where its step stood, and what is beside the critical path is told."""

from dataclasses import replace

import pytest

from core.analysis.run_view import top
from core.domain.types import RouteResult, Span
from tests.runs import make_run
from ui.charts.style import KINDS, ink, words
from ui.charts.waterfall import bars, waterfall, without_model

RUN = make_run(mishaps=False)
BAD = make_run()


def drawn(figure):
    """(route title, start, length, name) of every bar."""
    return sorted(
        (data[0], round(base, 6), round(x, 6), data[1])
        for bar in figure.data
        if bar.type == "bar" and bar.customdata is not None
        for base, x, data in zip(bar.base, bar.x, bar.customdata, strict=True)
    )


def looks(figure):
    """The bar's (pattern, outline, opacity, hover's note, text) by route title and step."""
    return {
        (data[0], data[1]): (shape, line, opacity, data[3], text)
        for bar in figure.data
        if bar.type == "bar" and bar.customdata is not None
        for data, shape, line, opacity, text in zip(
            bar.customdata,
            bar.marker.pattern.shape,
            bar.marker.line.color,
            bar.marker.opacity,
            bar.text,
            strict=True,
        )
    }


def forked(*, model=False):
    """Two steps side by side, 60 and 20 ms long, then a third one."""
    spans = (
        Span(1, None, "slow", "TOOL", 1.0, 60.0, calls=int(model)),
        Span(2, 1, "inside", "LLM" if model else "TOOL", 2.0, 30.0),
        Span(3, None, "quick", "RETRIEVER", 1.0, 20.0),
        Span(4, None, "after", "CHAIN", 61.0, 9.0),
    )
    return RouteResult("forked", "Forked", "ok", 71.0, spans=spans)


def test_every_step_is_a_bar_that_begins_where_it_began():
    expected = sorted(
        (words(r.title, 28), round(s.start_ms / 1000, 6), round(s.ms / 1000, 6), words(s.name, 60))
        for r in RUN.results
        for s in top(r)
    )
    assert drawn(waterfall(RUN)) == expected


def test_with_the_calls_below_every_span_is_a_bar():
    expected = sorted((words(r.title, 28), words(s.name, 60)) for r in RUN.results for s in r.spans)
    assert sorted((bar[0], bar[3]) for bar in drawn(waterfall(RUN, calls=True))) == expected


def test_routes_are_sorted_quickest_first_and_end_at_their_own_time():
    figure = waterfall(RUN)
    by_time = sorted(RUN.results, key=lambda r: r.ms)
    assert list(figure.layout.yaxis.ticktext) == [words(r.title, 28) for r in by_time]
    (ends,) = [one for one in figure.data if one.type == "scatter"]
    assert list(ends.x) == pytest.approx([r.ms / 1000 for r in by_time])


def test_retrieval_only_leaves_out_the_model_and_closes_its_gap():
    found = drawn(waterfall(RUN, retrieval_only=True))
    mine = [bar for bar in found if bar[0] == "Rewrite + hybrid"]
    assert [bar[1] for bar in mine] == pytest.approx([0.0, 1.4, 4.5, 6.7])
    assert not any("rewrite" in bar[3] or "variants" in bar[3] for bar in found)


def test_a_gap_is_closed_only_where_nothing_else_ran():
    kept = {bar.span.name: (bar.start, bar.end) for bar in bars(forked(model=True), retrieval_only=True)}
    assert kept == {"quick": (1.0, 21.0), "after": (21.0, 30.0)}  # 40 of the model's 60 ms were its alone


def test_without_the_model_the_order_is_another_and_is_told():
    told = "Without the language model's steps BM25 is the quickest, 1.4 ms, and HyDE the slowest, 8.2 ms."
    assert without_model(RUN) == told
    assert without_model(replace(RUN, results=RUN.results[:1])) == ""


def test_steps_side_by_side_do_not_cover_each_other_and_the_shorter_is_faint():
    found = {bar.span.name: bar for bar in bars(forked())}
    assert (found["slow"].low, found["slow"].high, found["quick"].low, found["quick"].high) == (
        0,
        0.5,
        0.5,
        1,
    )
    figure = waterfall(replace(RUN, results=(forked(),)))
    assert looks(figure)["Forked", "slow"][2] == 1.0
    _, _, opacity, note, _ = looks(figure)["Forked", "quick"]
    assert opacity == 0.4
    assert "40 ms to spare" in note
    assert looks(figure)["Forked", "slow"][1] == looks(figure)["Forked", "after"][1] == ink()
    assert looks(figure)["Forked", "quick"][1] == KINDS["RETRIEVER"][1]
    assert {"a concurrent step ran longer", "outlined: critical path"} <= {one.name for one in figure.data}
    assert "outlined: critical path" not in [one.name for one in waterfall(RUN).data]
    assert "a concurrent step ran longer" not in [one.name for one in waterfall(RUN).data]


def test_the_longest_step_carries_its_share():
    assert looks(waterfall(replace(RUN, results=(forked(),))))["Forked", "slow"][4] == "85%"
    assert looks(waterfall(RUN))["CRAG", "grade and decide"][4] == ">99%"
    assert looks(waterfall(RUN))["RAG-Fusion", "write query variants"][4] == ""  # hatched


def test_shared_cached_and_failed_steps_are_told_apart():
    found = looks(waterfall(BAD))
    assert found["BM25", "search BM25"][0] == ""
    assert found["Hybrid (RRF)", "search BM25"][0] == "/"
    assert found["Rewrite + hybrid", "rewrite as a standalone question"][0] == "."
    assert found["HyDE", "write hypothetical passages"][1] == "#D55E00"


def test_times_that_no_clock_gives_are_left_out():
    odd = (Span(1, None, "odd", "LLM", float("nan"), 1.0), Span(2, None, "odd", "LLM", 0.0, float("inf")))
    result = replace(RUN.results[0], spans=(*RUN.results[0].spans, *odd), ms=float("nan"))
    assert [bar[3] for bar in drawn(waterfall(replace(RUN, results=(result,))))] == ["search BM25"]
