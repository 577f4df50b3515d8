"""A waterfall of each route's time: a row for each route, a bar for each step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from core.analysis.critical_path import covered, critical, ended, on_path, timed
from core.analysis.run_view import below, source, top
from core.domain.format import brief, milliseconds
from core.domain.types import RouteResult, Run, Span
from ui.charts.style import ERROR, KINDS, Figure, add_bar_ends, chart, ink, row_axis, words

ROW = 26  # pixels
CALLS_HEIGHT = 14  # pixels that a row grows by if it shows the calls below its steps
LANES = 4  # concurrent steps drawn one below another
LABEL_SHARE = 0.06  # share of the width that a bar needs to have room for its label


class Bar(NamedTuple):
    """A step as drawn in the waterfall."""

    span: Span
    start: float  # ms on the route's clock
    end: float  # ms
    low: float  # upper edge within its row, 0 to 1 from the top
    high: float  # lower edge
    critical: bool  # whether it is on the critical path
    forked: bool  # whether the route ran steps concurrently, so the critical path leaves some out
    pattern: str  # hatching: "." if replayed, "/" if shared with another route
    text: str  # the label inside
    note: str  # what the hover adds to the duration, as HTML


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
    idle = []  # times in which only dropped steps ran
    for begin, stop in pairwise(sorted({edge for s in steps for edge in (s.start_ms, s.start_ms + s.ms)})):
        running = [s.id in dropped for s in steps if s.start_ms <= begin and s.start_ms + s.ms >= stop]
        if running and all(running):
            idle.append((begin, stop))
    lanes = _lanes(kept)
    count = max(lanes.values(), default=0) + 1
    drawn = []
    for span in kept:
        upper, lower = lanes[span.id] / count, (lanes[span.id] + 1) / count
        split = upper + (lower - upper) * 0.55 if calls else lower
        shift = covered(idle, 0.0, span.start_ms)
        for one in timed(below(result, span)) if calls else [span]:
            replayed = source(result, one)
            pattern = "." if replayed else "/" if one.shared_with else ""
            text, low, high = "", split, lower
            sharer = (one.shared_with or "").split("#", 1)[0]
            origin = f"from {'a' if replayed == 'recording' else 'the'} {replayed}, its original time"
            notes = [origin] if replayed else []
            notes += [words(str(when), 60)] if (when := one.attributes.get("time")) else []
            notes += [f"work done by {words(sharer, 30)}"] if sharer else []
            notes += [f"error: {words(one.error, 90)}"] if one.error else []
            if one.id == span.id:
                low, high = upper, split
                if span.id in path.slack:
                    notes.append(f"not on the critical path: {milliseconds(path.slack[span.id])} to spare")
                else:
                    share = brief(path.share(span.id))
                    text = share if span is path.longest and not pattern and not retrieval_only else ""
                    notes.append(f"{words(share, 9)} of the route's time")
            place = one.start_ms - shift, one.start_ms + one.ms - shift, low, high
            note = "".join(f"<br>{part}" for part in notes)
            drawn.append(Bar(one, *place, one.id in within, bool(path.slack), pattern, text, note))
    return drawn


def waterfall(run: Run, *, retrieval_only: bool = False, calls: bool = False) -> Figure:
    """Draw a row for each route, fastest first and failed routes last, each on its own clock.

    Hatched: another route of the run did the work. Dotted: from the cache or a recording, at its original
    time. Red outline: the step failed. If a route ran steps concurrently, its critical path is outlined and
    other steps are faint.
    """
    rows = by_time(run, retrieval_only=retrieval_only, calls=calls)
    width = max((end for _, _, end in rows), default=0.0) or 1.0
    unit, suffix = (1000, " s") if width >= 2000 else (1, " ms")
    names = [words(result.title, 28) for result, _, _ in rows]
    marks = ["" if result.status == "ok" else " ✕" for result, _, _ in rows]
    figure = chart(
        100 + (ROW + (CALLS_HEIGHT if calls else 0)) * max(1, len(rows)),
        x={"ticksuffix": suffix, "range": [0, 1.18 * width / unit], "fixedrange": False},
        y={**row_axis([name + mark for name, mark in zip(names, marks, strict=True)]), "fixedrange": False},
        barmode="overlay",
        uniformtext={"minsize": 9, "mode": "hide"},
    )
    drawn = [(n, bar) for n, (_, some, _) in enumerate(rows) for bar in some]
    seen = [bar for _, bar in drawn]
    for kind, (label, colour) in KINDS.items():
        chosen = [(row, bar) for row, bar in drawn if bar.span.kind == kind]
        if not chosen:
            continue
        outlines = [
            (ERROR, 2.5) if b.span.error else (ink(), 1.5) if b.forked and b.critical else (colour, 0.5)
            for _, b in chosen
        ]
        figure.add_bar(
            orientation="h",
            legendgroup=kind,
            showlegend=False,
            y=[row for row, _ in chosen],
            offset=[0.65 * bar.low - 0.325 for _, bar in chosen],
            width=[0.65 * (bar.high - bar.low) for _, bar in chosen],
            x=[(bar.end - bar.start) / unit for _, bar in chosen],
            base=[bar.start / unit for _, bar in chosen],
            text=[bar.text if bar.end - bar.start >= LABEL_SHARE * width else "" for _, bar in chosen],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            marker={
                "color": colour,
                "opacity": [1.0 if bar.critical else 0.4 for _, bar in chosen],
                "pattern": _hatched([bar.pattern for _, bar in chosen]),
                "line": {"color": [one for one, _ in outlines], "width": [wide for _, wide in outlines]},
            },
            customdata=[
                [names[row], words(bar.span.name, 60), milliseconds(bar.span.ms), bar.note]
                for row, bar in chosen
            ],
            hovertemplate=(
                "%{customdata[0]}: <b>%{customdata[1]}</b><br>%{customdata[2]}%{customdata[3]}<extra></extra>"
            ),
        )
        # The legend shows a bar's first pattern: it gets a bar of its own, without any.
        _legend(figure, label, legendgroup=kind, marker={"color": colour})
    add_bar_ends(
        figure,
        [end / unit for _, _, end in rows],
        [f" {milliseconds(end)}" for _, _, end in rows],
    )
    for label, look, occurs in (
        ("shared with another route", {"pattern": _hatched("/")}, any(bar.pattern == "/" for bar in seen)),
        ("cached or recorded", {"pattern": _hatched(".")}, any(bar.pattern == "." for bar in seen)),
        ("outlined: critical path", {"line": {"color": ink(), "width": 1.5}}, any(b.forked for b in seen)),
        ("a concurrent step ran longer", {"opacity": 0.4}, not all(bar.critical for bar in seen)),
    ):
        if occurs:
            _legend(figure, label, marker={"color": "#9a9d9f", **look})
    return figure


def _hatched(shape: str | list[str]) -> dict[str, Any]:
    return {"shape": shape, "solidity": 0.35, "size": 6}


def _legend(figure: Figure, label: str, **look: Any) -> None:
    """Add a bar that only the legend shows."""
    figure.add_bar(orientation="h", y=[None], x=[None], name=label, **look)


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


def _lanes(steps: Sequence[Span]) -> dict[int, int]:
    """Return a lane for each step so that concurrent steps do not cover each other, up to LANES of them."""
    free: list[float] = []
    lanes = {}
    for span in sorted(steps, key=lambda one: one.start_ms):
        lane = next((n for n, end in enumerate(free) if end <= span.start_ms + 1e-6), len(free))
        free[lane:] = [span.start_ms + span.ms, *free[lane + 1 :]]
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
