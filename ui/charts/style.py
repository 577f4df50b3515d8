"""The theme of all charts: colours, layout and shared parts. A step kind has one colour everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from core.domain.format import STEP_KINDS, milliseconds
from core.domain.types import SpanKind

if TYPE_CHECKING:
    from plotly import graph_objects as go

# Okabe & Ito 2008, "Color Universal Design": distinguishable with every common form of colour blindness.
# Vermillion is kept for errors.
_COLOURS: Mapping[SpanKind, str] = {
    "LLM": "#E69F00",
    "EMBEDDING": "#56B4E9",
    "RETRIEVER": "#0072B2",
    "CHAIN": "#009E73",
    "RERANKER": "#B5A642",
    "EVALUATOR": "#CC79A7",
    "TOOL": "#7A6FB0",
    "GUARDRAIL": "#8A8D91",
    "AGENT": "#5F6B78",
}
KINDS: Mapping[SpanKind, tuple[str, str]] = {  # what a kind of step is called, and its colour
    kind: (STEP_KINDS[kind], colour) for kind, colour in _COLOURS.items()
}
ERROR = "#D55E00"
Figure: TypeAlias = "go.Figure"  # plotly is imported by what draws: it takes half a second
# Whether the reader's browser is dark; ui.app.plot sets what asks the browser.
is_dark: Callable[[], bool] = lambda: False  # noqa: E731 - replaced as a whole
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"


def pick(light: str, dark: str) -> str:
    """Return the colour for the reader's theme."""
    return dark if is_dark() else light


def ink() -> str:
    """Return the text colour."""
    return pick("#22262a", "#e4e2dd")


def faint() -> str:
    """Return the colour of grid lines and empty cells."""
    return pick("#e3dfd6", "#343a40")


def paper() -> str:
    """Return the page's own colour, for outlines."""
    return pick("#fdfcfa", "#15181b")


def scale() -> list[tuple[float, str]]:
    """Return a colour scale of one hue, from faint (0) to strong (1)."""
    return [
        (0.0, pick("#f1efe9", "#1e2428")),
        (0.5, pick("#8cc1bb", "#1d4f50")),
        (1.0, pick("#0b5e5e", "#2b8f86")),
    ]


def chart(
    height: int, *, x: Mapping[str, Any] | None = None, y: Mapping[str, Any] | None = None, **layout: Any
) -> Figure:
    """Return an empty figure in the theme of all charts: `height` pixels, on the page's own background.

    `x` and `y` change the axes, `layout` anything else. Give them here: plotly takes three times as long to
    update a layout later.
    """
    import plotly.graph_objects as go

    axis = {"gridcolor": faint(), "zeroline": False, "fixedrange": True, "automargin": True}
    text = {"family": FONT, "size": 12}
    theme = {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {**text, "color": ink()},
        "hoverlabel": {"font": text, "align": "left"},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
    }
    axes = {"xaxis": {**axis, **(x or {})}, "yaxis": {**axis, **(y or {})}}
    for one in axes.values():
        if isinstance(one.get("title"), str):
            one["title"] = {"text": one["title"], "font": {"size": 12}}
    return go.Figure(layout={**theme, "height": height, **axes, **layout})


def row_axis(names: Sequence[str]) -> dict[str, Any]:
    """Return a y axis with one row for each name, the first at the top."""
    return {
        "range": [len(names) - 0.5, -0.5],
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "ticksuffix": "  ",
        "showgrid": False,
    }


def name_axis(names: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return an axis with one evenly spaced place for each name and no grid lines."""
    return {"tickvals": list(range(len(names))), "ticktext": list(names), "showgrid": False, **more}


def duration_ticks(least: float, most: float) -> dict[str, Any]:
    """Return ticks of a log axis from `least` to `most` ms as durations: powers of ten, or 1, 2, 5 if few."""
    steps = (1, 2, 5) if most < 1000 * least else (1,)
    ticks = [round(m * 10.0**n, 2 - n) for n in range(-2, 8) for m in steps]
    return {"tickvals": ticks, "ticktext": [milliseconds(ms) if ms >= 0.1 else f"{ms:g} ms" for ms in ticks]}


def outlined(symbol: str, size: float, colour: str | list[str]) -> dict[str, Any]:
    """Return a marker whose outline keeps its colour, so that open symbols are as visible as filled ones."""
    return {"symbol": symbol, "size": size, "color": colour, "line": {"width": 2, "color": colour}}


def error_bars(values: Sequence[float], ends: Sequence[tuple[float, float]], colour: str) -> dict[str, Any]:
    """Return error bars from the lower to the upper end of each value's interval."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for value, (_, high) in zip(values, ends, strict=True)],
        "arrayminus": [value - low for value, (low, _) in zip(values, ends, strict=True)],
        "color": colour,
        "thickness": 2,
        "width": 5,
    }


def add_cells(figure: Figure, values: Sequence[Sequence[float | None]], **more: Any) -> None:
    """Add a heatmap with a row for each sequence in `values`."""
    figure.add_heatmap(
        z=values,
        x=list(range(len(values[0]) if values else 0)),
        y=list(range(len(values))),
        colorscale=scale(),
        showscale=False,
        **{"xgap": 2, "ygap": 2, **more},
    )


def add_points(
    figure: Figure, points: Sequence[tuple[Any, Any, Any]], hover: str, marker: Mapping[str, Any], **more: Any
) -> None:
    """Add markers at `points`, each (x, y, customdata), with a template of their `hover` if they have one.

    Nothing is added without points.
    """
    if points:
        x, y, about = zip(*points, strict=True)
        look = {"mode": "markers", "marker": marker, "hoverinfo": None if hover else "skip"}
        look["hovertemplate"] = f"{hover}<extra></extra>" if hover else None
        figure.add_scatter(x=x, y=y, customdata=about, **{**look, **more})


def add_line(
    figure: Figure, x: Sequence[Any], y: Sequence[Any], line: Mapping[str, Any], **more: Any
) -> None:
    """Add a line that only leads the eye: without a hover, and without a legend unless named."""
    look = {"hoverinfo": "skip", "showlegend": "name" in more, **more}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, **look)


def add_bar_ends(figure: Figure, ends: Sequence[float], texts: Sequence[str]) -> None:
    """Write each row's text at the right end of its bar."""
    look = {"textposition": "middle right", "showlegend": False, "hoverinfo": "skip", "cliponaxis": False}
    figure.add_scatter(y=list(range(len(ends))), x=ends, text=texts, mode="text", **look)


def add_threshold(figure: Figure, value: float, text: str, *, dash: str = "solid", left: bool) -> None:
    """Draw a vertical line with its text to the `left` or right of it, above the chart."""
    line = {"color": ink(), "width": 1.3, "dash": dash}
    figure.add_shape(type="line", x0=value, x1=value, y0=0, y1=1, yref="paper", line=line)
    place = {"x": value, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    figure.add_annotation(text=text, xanchor="right" if left else "left", font={"size": 11}, **place)


def words(text: str, limit: int) -> str:
    """Return one line of at most `limit` characters for an axis or a hover, escaped for plotly."""
    line = " ".join(text.split())
    return escape(line if len(line) <= limit else line[: limit - 1].rstrip() + "…")
