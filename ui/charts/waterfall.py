"""A waterfall of each route's time: a row for each route, a bar for each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from core.analysis.critical_path import Path, covered, critical, ended, on_path, timed
from core.analysis.run_view import below, source, top
from core.domain.format import brief, milliseconds
from core.domain.types import RouteResult, Run, Span
from ui.charts.style import ERROR, KINDS, add_bar_ends, chart, ink, row_axis, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels
CALLS_HEIGHT = 14  # pixels that a row grows by if it shows the calls below its steps
LANES = 4  # concurrent steps drawn one below another
LABEL_SHARE = 0.06  # share of the width that a bar needs to have room for its label
ZOOMS = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0, 300_000.0)  # ms


@dataclass(frozen=True, slots=True)
class Bar:
    """A step as drawn in the waterfall."""

    result: RouteResult
    span: Span
    start: float  # ms on the route's clock
    end: float  # ms
    low: float = 0.0  # upper edge within its row, 0 to 1 from the top
    high: float = 1.0  # lower edge
    critical: bool = True  # whether it is on the critical path
    forked: bool = False  # whether the route ran steps concurrently, so the critical path leaves some out
    text: str = ""  # the label inside
    note: str = ""  # what the hover adds, as HTML


def asks_model(result: RouteResult, span: Span) -> bool:
    """Return whether this step or one below it called a language model."""
    return any(one.kind == "LLM" or one.calls > 0 for one in below(result, span))


def bars(result: RouteResult, *, retrieval_only: bool = False, calls: bool = False) -> list[Bar]:
    """Return bars for a route's steps and, with `calls`, for the calls inside them.

    Concurrent steps get lanes one below another. `retrieval_only` leaves out steps that call the language
    model and closes the gaps in which nothing else ran.
    """
    path, within = critical(result), on_path(result)
    steps = timed(top(result))
    dropped = {span.id for span in steps if retrieval_only and asks_model(result, span)}
    kept = [span for span in steps if span.id not in dropped]
    closed = _idle(steps, dropped)
    lanes = _lanes(kept)
    count = max(lanes.values(), default=0) + 1
    drawn = []
    for span in kept:
        upper, lower = lanes[span.id] / count, (lanes[span.id] + 1) / count
        split = upper + (lower - upper) * 0.55 if calls else lower
        shift = covered(closed, 0.0, span.start_ms)
        for one in timed(below(result, span)) if calls else [span]:
            inner = one.id != span.id
            drawn.append(
                Bar(
                    result,
                    one,
                    one.start_ms - shift,
                    one.start_ms + one.ms - shift,
                    split if inner else upper,
                    lower if inner else split,
                    one.id in within,
                    bool(path.slack),
                    "" if inner or retrieval_only else _share(path, result, span),
                    note(result, one) + ("" if inner else _waited(path, span)),
                )
            )
    return drawn


def waterfall(
    run: Run,
    *,
    retrieval_only: bool = False,
    calls: bool = False,
    until: float | None = None,
) -> Figure:
    """Draw a row for each route, fastest first and failed routes last, each on its own clock.

    Hatched: another route of the run did the work. Dotted: from the cache or a recording, at its original
    time. Red outline: the step failed. If a route ran steps concurrently, its critical path is outlined and
    other steps are faint. `until` shows only the first milliseconds, up to that time.
    """
    rows = by_time(run, retrieval_only=retrieval_only, calls=calls)
    longest = max((end for _, _, end in rows), default=0.0) or 1.0
    width = longest if until is None else min(until, longest)
    unit, suffix = (1000, " s") if width >= 2000 else (1, " ms")
    height = ROW + (CALLS_HEIGHT if calls else 0)
    drawn = [
        (row, replace(bar, end=min(bar.end, width), text=bar.text if _wide(bar, width) else ""))
        for row, (_, some, _) in enumerate(rows)
        for bar in some
        if bar.start < width or not bar.start
    ]
    names = [f"{words(result.title, 28)}{'' if result.status == 'ok' else ' ✕'}" for result, _, _ in rows]
    figure = chart(
        100 + height * max(1, len(rows)),
        x={"ticksuffix": suffix, "range": [0, 1.18 * width / unit], "fixedrange": False},
        y={**row_axis(names), "fixedrange": False},
        barmode="overlay",
        uniformtext={"minsize": 9, "mode": "hide"},
    )
    for kind, (label, colour) in KINDS.items():
        chosen = [(row, bar) for row, bar in drawn if bar.span.kind == kind]
        if not chosen:
            continue
        figure.add_bar(
            orientation="h",
            legendgroup=kind,
            showlegend=False,
            y=[row for row, _ in chosen],
            offset=[0.65 * bar.low - 0.325 for _, bar in chosen],
            width=[0.65 * (bar.high - bar.low) for _, bar in chosen],
            x=[(bar.end - bar.start) / unit for _, bar in chosen],
            base=[bar.start / unit for _, bar in chosen],
            text=[bar.text for _, bar in chosen],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            marker={
                "color": colour,
                "opacity": [1.0 if bar.critical else 0.4 for _, bar in chosen],
                **_hatched([pattern(bar.result, bar.span) for _, bar in chosen]),
                "line": {
                    "color": [_outline(bar, colour, ink())[0] for _, bar in chosen],
                    "width": [_outline(bar, colour, ink())[1] for _, bar in chosen],
                },
            },
            customdata=[
                [words(bar.result.title, 28), words(bar.span.name, 60), milliseconds(bar.span.ms), bar.note]
                for _, bar in chosen
            ],
            hovertemplate=(
                "%{customdata[0]}: <b>%{customdata[1]}</b><br>%{customdata[2]}%{customdata[3]}<extra></extra>"
            ),
        )
        # The legend shows a bar's first pattern: it gets a bar of its own, without any.
        figure.add_bar(
            orientation="h", y=[None], x=[None], name=label, legendgroup=kind, marker={"color": colour}
        )
    add_bar_ends(
        figure,
        [min(end, width) / unit for _, _, end in rows],
        [f" {'… ' if end > width else ''}{milliseconds(end)}" for _, _, end in rows],
    )
    _explain(figure, drawn)
    return figure


def by_time(
    run: Run, *, retrieval_only: bool, calls: bool = False
) -> list[tuple[RouteResult, list[Bar], float]]:
    """Return routes with their bars and end times in ms, fastest first and failed routes last."""
    rows = []
    for result in run.results:
        if result.spans:
            drawn = bars(result, retrieval_only=retrieval_only, calls=calls)
            last = max((bar.end for bar in drawn), default=0.0)
            rows.append((result, drawn, last if retrieval_only else max(last, ended(result))))
    return sorted(rows, key=lambda row: (row[0].status != "ok", row[2]))


def zooms(run: Run) -> list[float]:
    """Return the zooms in ms: round numbers below the slowest route's time."""
    longest = max((ended(result) for result in run.results if result.spans), default=0.0)
    return [ms for ms in ZOOMS if ms < longest]


def pattern(result: RouteResult, span: Span) -> str:
    """Return the hatching of a step: "." if replayed, "/" if shared with another route, else ""."""
    if source(result, span):
        return "."
    return "/" if span.shared_with else ""


def note(result: RouteResult, span: Span) -> str:
    """Return what a hover adds to the duration, as HTML."""
    parts = []
    if came_from := source(result, span):
        parts.append(f"from {'a' if came_from == 'recording' else 'the'} {came_from}, its original time")
    if origin := span.attributes.get("time"):
        parts.append(words(str(origin), 60))
    if span.shared_with:
        parts.append(f"work done by {words(span.shared_with.split('#', 1)[0], 30)}")
    if span.error:
        parts.append(f"error: {words(span.error, 90)}")
    return "".join(f"<br>{part}" for part in parts)


def _explain(figure: Figure, drawn: Sequence[tuple[int, Bar]]) -> None:
    """Add legend entries for the patterns and outlines that occur."""
    shapes = {pattern(bar.result, bar.span) for _, bar in drawn}
    entries: list[tuple[str, dict[str, Any], bool]] = [
        ("shared with another route", _hatched("/"), "/" in shapes),
        ("cached or recorded", _hatched("."), "." in shapes),
        (
            "outlined: critical path",
            {"line": {"color": ink(), "width": 1.5}},
            any(bar.forked for _, bar in drawn),
        ),
        ("a concurrent step ran longer", {"opacity": 0.4}, not all(bar.critical for _, bar in drawn)),
    ]
    for label, look, occurs in entries:
        if occurs:
            figure.add_bar(
                orientation="h", y=[None], x=[None], name=label, marker={"color": "#9a9d9f", **look}
            )


def _outline(bar: Bar, colour: str, ink: str) -> tuple[str, float]:
    """Return the colour and width of a bar's outline: error, critical path, or its own colour."""
    if bar.span.error:
        return ERROR, 2.5
    return (ink, 1.5) if bar.forked and bar.critical else (colour, 0.5)


def _hatched(shape: str | list[str]) -> dict[str, Any]:
    return {"pattern": {"shape": shape, "solidity": 0.35, "size": 6}}


def _share(path: Path, result: RouteResult, span: Span) -> str:
    """Return the label inside a bar: the longest step's share of the route's time, unless it is hatched."""
    return brief(path.share(span.id)) if span is path.longest and not pattern(result, span) else ""


def _waited(path: Path, span: Span) -> str:
    if span.id in path.slack:
        return f"<br>not on the critical path: {milliseconds(path.slack[span.id])} to spare"
    return f"<br>{words(brief(path.share(span.id)), 9)} of the route's time"


def _wide(bar: Bar, width: float) -> bool:
    return min(bar.end, width) - bar.start >= LABEL_SHARE * width


def _idle(steps: Sequence[Span], dropped: set[int]) -> list[tuple[float, float]]:
    """Return the intervals of time in which only dropped steps ran."""
    edges = sorted({edge for span in steps for edge in (span.start_ms, span.start_ms + span.ms)})
    stretches = []
    for low, high in pairwise(edges):
        running = [s.id in dropped for s in steps if s.start_ms <= low and s.start_ms + s.ms >= high]
        if running and all(running):
            stretches.append((low, high))
    return stretches


def _lanes(steps: Sequence[Span]) -> dict[int, int]:
    """Return a lane for each step so that concurrent steps do not cover each other, up to LANES of them."""
    free: list[float] = []
    lanes = {}
    for span in sorted(steps, key=lambda one: one.start_ms):
        lane = next((n for n, end in enumerate(free) if end <= span.start_ms + 1e-6), len(free))
        if lane == len(free):
            free.append(0.0)
        free[lane] = span.start_ms + span.ms
        lanes[span.id] = lane % LANES
    return lanes


def without_model(run: Run) -> str:
    """Name the fastest and the slowest route if calls of the language model took no time."""
    rows = [row for row in by_time(run, retrieval_only=True) if row[0].status == "ok" and row[1]]
    if len(rows) < 2:
        return ""
    (quick, _, least), (slow, _, most) = rows[0], rows[-1]
    return (
        f"Without the language model's steps {quick.title} is the quickest, {milliseconds(least)}, and"
        f" {slow.title} the slowest, {milliseconds(most)}."
    )
