"""Where each route's time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.charts.look import ERROR, KINDS, base, faint, milliseconds, words
from core.reading import below, source, top
from core.types import RouteResult, Run, Span

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW = 26  # pixels


def asks_model(result: RouteResult, span: Span) -> bool:
    """Whether a language model was asked in this step or below it."""
    return any(one.kind == "LLM" or one.calls > 0 for one in below(result, span))


def bars(result: RouteResult, *, retrieval_only: bool) -> list[tuple[Span, float]]:
    """The route's own steps and where each bar begins, ms; without the model's steps the gaps they leave are
    closed.
    """
    steps = top(result)
    if not retrieval_only:
        return [(span, span.start_ms) for span in steps]
    dropped = [span for span in steps if asks_model(result, span)]
    return [
        (span, span.start_ms - sum(d.ms for d in dropped if d.start_ms < span.start_ms))
        for span in steps
        if not any(span is d for d in dropped)
    ]


def waterfall(run: Run, *, dark: bool = False, retrieval_only: bool = False) -> Figure:
    """A row a route, quickest first; each bar starts where the step started on the route's own clock.

    Hatched: another route of the run did the work. Dotted: from the cache or a recording, at its original
    time. Outlined: the step failed.
    """
    import plotly.graph_objects as go

    rows = [(r, bars(r, retrieval_only=retrieval_only)) for r in run.results if r.spans]
    ends = {r.route: max((start + span.ms for span, start in drawn), default=0.0) for r, drawn in rows}
    rows.sort(key=lambda row: ends[row[0].route])
    longest = max(ends.values(), default=1.0)
    unit, suffix = (1000, " s") if longest >= 2000 else (1, " ms")
    figure = go.Figure()
    present = {span.kind for _, drawn in rows for span, _ in drawn}
    for kind, (label, colour) in KINDS.items():
        chosen = [(r, span, start) for r, drawn in rows for span, start in drawn if span.kind == kind]
        if kind not in present:
            continue
        figure.add_bar(
            orientation="h",
            name=label,
            legendgroup=kind,
            y=[words(r.title, 28) for r, _, _ in chosen],
            x=[span.ms / unit for _, span, _ in chosen],
            base=[start / unit for _, _, start in chosen],
            marker={
                "color": colour,
                "pattern": {
                    "shape": [pattern(r, span) for r, span, _ in chosen],
                    "solidity": 0.35,
                    "size": 6,
                },
                "line": {
                    "color": [ERROR if span.error else colour for _, span, _ in chosen],
                    "width": [2.5 if span.error else 0.5 for _, span, _ in chosen],
                },
            },
            customdata=[
                [words(span.name, 60), milliseconds(span.ms), note(r, span)] for r, span, _ in chosen
            ],
            hovertemplate="%{y}: <b>%{customdata[0]}</b><br>%{customdata[1]}%{customdata[2]}<extra></extra>",
        )
    totals = [(words(r.title, 28), ends[r.route]) for r, _ in rows]
    figure.add_scatter(
        y=[title for title, _ in totals],
        x=[end / unit for _, end in totals],
        text=[f" {milliseconds(end)}" for _, end in totals],
        mode="text",
        textposition="middle right",
        showlegend=False,
        hoverinfo="skip",
        cliponaxis=False,
    )
    for shape, label in (("/", "shared with another route"), (".", "cached or recorded")):
        pattern_look = {"shape": shape, "solidity": 0.35, "size": 6}
        figure.add_bar(
            orientation="h",
            y=[None],
            x=[None],
            name=label,
            marker={"color": "#9a9d9f", "pattern": pattern_look},
        )
    figure.update_layout(
        **base(dark=dark, height=90 + ROW * max(1, len(rows))),
        barmode="overlay",
        bargap=0.35,
        xaxis={
            "title": None,
            "ticksuffix": suffix,
            "range": [0, 1.18 * longest / unit],
            "automargin": True,
            "gridcolor": faint(dark=dark),
            "zeroline": False,
        },
        yaxis={
            "autorange": "reversed",
            "categoryorder": "array",
            "categoryarray": [title for title, _ in totals],
            "automargin": True,
            "ticksuffix": "  ",
        },
    )
    return figure


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
    if span.shared_with:
        parts.append(f"work done by {words(span.shared_with.split('#', 1)[0], 30)}")
    if span.error:
        parts.append(f"error: {words(span.error, 90)}")
    return "".join(f"<br>{part}" for part in parts)
