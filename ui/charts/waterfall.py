"""Where each route's time goes: a row a route, a bar a step, on the route's own clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from core.analysis.critical_path import Path, covered, critical, ended, on_path, timed
from core.analysis.run_view import below, source, top
from core.domain.format import brief, milliseconds
from core.domain.types import RouteResult, Run, Span
from ui.charts.style import ERROR, KINDS, base, faint, ink, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels
DEEPER = 14  # pixels that a row grows by when it shows the calls below its steps
LANES = 4  # steps side by side that are drawn one below another
WRITTEN = 0.06  # of the width: a bar narrower than this has no room for its share
ZOOMS = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0, 300_000.0)  # ms


@dataclass(frozen=True, slots=True)
class Bar:
    """One step as it is drawn: from `start` to `end` ms; `low` and `high` are edges within its row, 0 to 1
    from its upper one.
    """

    result: RouteResult
    span: Span
    start: float
    end: float
    low: float = 0.0
    high: float = 1.0
    critical: bool = True
    forked: bool = False  # whether the route ran steps side by side, so that the path is a choice of them
    text: str = ""
    note: str = ""


def asks_model(result: RouteResult, span: Span) -> bool:
    """Whether a language model was asked in this step or below it."""
    return any(one.kind == "LLM" or one.calls > 0 for one in below(result, span))


def bars(result: RouteResult, *, retrieval_only: bool = False, calls: bool = False) -> list[Bar]:
    """The route's own steps, and with `calls` what was done inside them; side by side where they ran so.

    Without the model's steps the gaps that they leave are closed: a moment when nothing but such steps ran
    takes no width.
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
    dark: bool = False,
    retrieval_only: bool = False,
    calls: bool = False,
    until: float | None = None,
) -> Figure:
    """A row a route, quickest first, those that did not go well last; each bar starts where the step started
    on the route's own clock.

    Hatched: another route of the run did the work. Dotted: from the cache or a recording, at its original
    time. Red outline: the step failed. Where a route ran steps side by side, its critical path is outlined
    and what is not on it is faint. `until` shows only the first so many milliseconds.
    """
    import plotly.graph_objects as go

    rows = by_time(run, retrieval_only=retrieval_only, calls=calls)
    longest = max((end for _, _, end in rows), default=0.0) or 1.0
    width = longest if until is None else min(until, longest)
    unit, suffix = (1000, " s") if width >= 2000 else (1, " ms")
    height = ROW + (DEEPER if calls else 0)
    drawn = [
        (row, replace(bar, end=min(bar.end, width), text=bar.text if _wide(bar, width) else ""))
        for row, (_, some, _) in enumerate(rows)
        for bar in some
        if bar.start < width or not bar.start
    ]
    # The layout is given at once: to update it afterwards takes plotly three times as long.
    figure = go.Figure(
        layout=dict(
            **base(dark=dark, height=100 + height * max(1, len(rows))),
            barmode="overlay",
            uniformtext={"minsize": 9, "mode": "hide"},
            xaxis={
                "title": None,
                "ticksuffix": suffix,
                "range": [0, 1.18 * width / unit],
                "automargin": True,
                "gridcolor": faint(dark=dark),
                "zeroline": False,
            },
            yaxis={
                "range": [len(rows) - 0.5, -0.5],
                "tickvals": list(range(len(rows))),
                "ticktext": [f"{words(r.title, 28)}{'' if r.status == 'ok' else ' ✕'}" for r, _, _ in rows],
                "showgrid": False,
                "zeroline": False,
                "automargin": True,
                "ticksuffix": "  ",
            },
        )
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
                    "color": [_outline(bar, colour, ink(dark=dark))[0] for _, bar in chosen],
                    "width": [_outline(bar, colour, ink(dark=dark))[1] for _, bar in chosen],
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
    figure.add_scatter(
        y=list(range(len(rows))),
        x=[min(end, width) / unit for _, _, end in rows],
        text=[f" {'… ' if end > width else ''}{milliseconds(end)}" for _, _, end in rows],
        mode="text",
        textposition="middle right",
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )
    _explain(figure, drawn, dark=dark)
    return figure


def by_time(
    run: Run, *, retrieval_only: bool, calls: bool = False
) -> list[tuple[RouteResult, list[Bar], float]]:
    """Routes with their bars and where they end, the quickest first, those that did not go well last."""
    rows = []
    for result in run.results:
        if result.spans:
            drawn = bars(result, retrieval_only=retrieval_only, calls=calls)
            last = max((bar.end for bar in drawn), default=0.0)
            rows.append((result, drawn, last if retrieval_only else max(last, ended(result))))
    return sorted(rows, key=lambda row: (row[0].status != "ok", row[2]))


def zooms(run: Run) -> list[float]:
    """The first milliseconds that a zoom can show: round numbers below the slowest route's time."""
    longest = max((ended(result) for result in run.results if result.spans), default=0.0)
    return [ms for ms in ZOOMS if ms < longest]


def pattern(result: RouteResult, span: Span) -> str:
    """The hatching that says whose time this is."""
    if source(result, span):
        return "."
    return "/" if span.shared_with else ""


def note(result: RouteResult, span: Span) -> str:
    """What a hover adds to the duration."""
    parts = []
    if came_from := source(result, span):
        parts.append(f"from {'a' if came_from == 'recording' else 'the'} {came_from}, its original time")
    if told := span.attributes.get("time"):
        parts.append(words(str(told), 60))
    if span.shared_with:
        parts.append(f"work done by {words(span.shared_with.split('#', 1)[0], 30)}")
    if span.error:
        parts.append(f"error: {words(span.error, 90)}")
    return "".join(f"<br>{part}" for part in parts)


def _explain(figure: Figure, drawn: Sequence[tuple[int, Bar]], *, dark: bool) -> None:
    """Legend entries for what is not a colour, where it occurs."""
    shapes = {pattern(bar.result, bar.span) for _, bar in drawn}
    entries: list[tuple[str, dict[str, Any], bool]] = [
        ("shared with another route", _hatched("/"), "/" in shapes),
        ("cached or recorded", _hatched("."), "." in shapes),
        (
            "outlined: critical path",
            {"line": {"color": ink(dark=dark), "width": 1.5}},
            any(bar.forked for _, bar in drawn),
        ),
        ("another ran longer beside it", {"opacity": 0.4}, not all(bar.critical for _, bar in drawn)),
    ]
    for label, look, occurs in entries:
        if occurs:
            figure.add_bar(
                orientation="h", y=[None], x=[None], name=label, marker={"color": "#9a9d9f", **look}
            )


def _outline(bar: Bar, colour: str, ink: str) -> tuple[str, float]:
    """A bar's outline and its width: of a failed step, on the path where there was a choice, of any other."""
    if bar.span.error:
        return ERROR, 2.5
    return (ink, 1.5) if bar.forked and bar.critical else (colour, 0.5)


def _hatched(shape: str | list[str]) -> dict[str, Any]:
    return {"pattern": {"shape": shape, "solidity": 0.35, "size": 6}}


def _share(path: Path, result: RouteResult, span: Span) -> str:
    """What stands in the bar of the step that takes most of a route's time; hatching leaves no room."""
    return brief(path.share(span.id)) if span is path.longest and not pattern(result, span) else ""


def _waited(path: Path, span: Span) -> str:
    if span.id in path.slack:
        return f"<br>not on the critical path: {milliseconds(path.slack[span.id])} to spare"
    return f"<br>{words(brief(path.share(span.id)), 9)} of the route's time"


def _wide(bar: Bar, width: float) -> bool:
    return min(bar.end, width) - bar.start >= WRITTEN * width


def _idle(steps: Sequence[Span], dropped: set[int]) -> list[tuple[float, float]]:
    """The stretches of time in which only dropped steps ran."""
    edges = sorted({edge for span in steps for edge in (span.start_ms, span.start_ms + span.ms)})
    stretches = []
    for low, high in pairwise(edges):
        running = [s.id in dropped for s in steps if s.start_ms <= low and s.start_ms + s.ms >= high]
        if running and all(running):
            stretches.append((low, high))
    return stretches


def _lanes(steps: Sequence[Span]) -> dict[int, int]:
    """A lane for each step, so that those that ran at one time do not cover each other, up to LANES."""
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
    """The quickest and the slowest route if the language model's steps took no time, in words."""
    rows = [row for row in by_time(run, retrieval_only=True) if row[0].status == "ok" and row[1]]
    if len(rows) < 2:
        return ""
    (quick, _, least), (slow, _, most) = rows[0], rows[-1]
    return (
        f"Without the language model's steps {quick.title} is the quickest, {milliseconds(least)}, and"
        f" {slow.title} the slowest, {milliseconds(most)}."
    )
