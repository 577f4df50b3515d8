"""A metric against the values of a parameter, or of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.analysis.metrics import titled
from core.evaluation.finding import figures
from core.evaluation.tuning.sweep import Curve, Tried, found, named
from core.evaluation.tuning.sweep_grid import shown
from ui.charts.style import ERROR, KINDS, add_cells, chart, error_bars, ink, name_axis, outlined, words

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

EVEN_RATIO = 50  # values whose largest is that many times the least are spaced evenly
COLOURS = {"better": KINDS["CHAIN"][1], "worse": ERROR}
SYMBOLS = {"better": "circle", "worse": "square"}
HEIGHT = 360
LEAST_SPAN = 0.02  # half the range of the axis if all values are equal


def sweep_curve(curve: Curve) -> Figure:
    """Draw the mean at each value of one parameter on the questions used to choose.

    Error bars are the 95% interval of the difference from the value in use: a bar that reaches the dashed
    line shows no difference. The chosen value appears again on the held-out questions.
    """
    places, ticks = _places([one.point[0] for one in curve.tried])
    done = [(x, one) for x, one in zip(places, curve.tried, strict=True) if one.effect is not None]
    figure = chart(
        HEIGHT,
        x={"title": words(curve.subject.names[0], 60), **ticks},
        y={"title": titled(curve.metric), **_span(done)},
    )
    figure.add_scatter(
        x=[x for x, _ in done],
        y=[one.effect.mean for _, one in done if one.effect],
        mode="lines",
        line={"color": KINDS["RETRIEVER"][1], "width": 2},
        hoverinfo="skip",
        showlegend=False,
    )
    for verdict in ("better", "worse", ""):
        some = [(x, one) for x, one in done if _kind(one) == verdict and one.point != curve.subject.now]
        if some:
            _marks(figure, curve, some, verdict)
    now = [(x, one) for x, one in done if one.point == curve.subject.now]
    for x, one in now:
        mean = one.effect.mean if one.effect else 0.0
        figure.add_hline(y=mean, line={"color": ink(), "width": 1, "dash": "dash"})
        figure.add_scatter(
            x=[x],
            y=[mean],
            mode="markers",
            name="in use",
            marker={"symbol": "diamond", "size": 13, "color": ink()},
            hovertemplate=f"{words(named(curve.subject, one.point), 80)}, in use: %{{y:.3f}}<extra></extra>",
        )
    if curve.held is not None:
        x = next(x for x, one in done if one.point == curve.best.point)
        figure.add_scatter(
            x=[now[0][0], x],
            y=[curve.held.before, curve.held.mean],
            mode="lines+markers",
            name="held-out questions, in use and chosen",
            line={"color": KINDS["TOOL"][1], "dash": "dot"},
            marker={"symbol": "x", "size": 10, "color": KINDS["TOOL"][1]},
            hovertemplate="held-out questions: %{y:.3f}<extra></extra>",
        )
    return figure


def sweep_map(curve: Curve) -> Figure:
    """Draw the mean at each pair of values of two parameters, framing the pair in use and the chosen one."""
    subject = curve.subject
    rows, columns = (_ordered([one.point[n] for one in curve.tried]) for n in (0, 1))
    by = {one.point: one for one in curve.tried}
    cells = [[by.get((row, column)) for column in columns] for row in rows]
    figure = chart(
        90 + 46 * len(rows),
        x=name_axis([words(shown(value), 30) for value in columns], title=words(subject.names[1], 60)),
        y=name_axis([words(shown(value), 30) for value in rows], title=words(subject.names[0], 60)),
    )
    add_cells(
        figure,
        [[one.effect.mean if one and one.effect else None for one in row] for row in cells],
        text=[[_cell(one) for one in row] for row in cells],
        texttemplate="%{text}",
        customdata=[[_hover(one, curve) for one in row] for row in cells],
        hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=False,
    )
    frames = ((subject.now, "dash", ink()), (curve.best.point, "solid", KINDS["LLM"][1]))
    for (row, column), dash, colour in frames:
        x, y = columns.index(column), rows.index(row)
        figure.add_shape(
            type="rect",
            x0=x - 0.48,
            x1=x + 0.48,
            y0=y - 0.48,
            y1=y + 0.48,
            line={"color": colour, "width": 3, "dash": dash},
        )
    return figure


def describe_sweep(curve: Curve, sentences: list[str]) -> str:
    """Describe the chart: its `sentences`, then the mean at each point."""
    points = "; ".join(
        f"{', '.join(map(shown, one.point))}: {one.effect.mean:.3f}"
        if one.effect
        else f"{', '.join(map(shown, one.point))}: needs a run"
        for one in curve.tried
    )
    return f"{' '.join(sentences)} {titled(curve.metric)} by {' and '.join(curve.subject.names)}: {points}."


def _marks(figure: Figure, curve: Curve, some: list[tuple[float, Tried]], verdict: str) -> None:
    colour = COLOURS.get(verdict, KINDS["GUARDRAIL"][1])
    effects = [one.effect for _, one in some if one.effect is not None]
    # The interval of the difference, drawn about the mean in use.
    ends = [
        (mean + low - e.delta, mean + high - e.delta)
        for e in effects
        for mean, (low, high) in [(e.mean, e.interval or (e.delta, e.delta))]
    ]
    figure.add_scatter(
        x=[x for x, _ in some],
        y=[effect.mean for effect in effects],
        mode="markers",
        name=f"shown {verdict}" if verdict else "no difference shown",
        marker=outlined(SYMBOLS.get(verdict, "circle-open"), 10, colour),
        error_y=error_bars([effect.mean for effect in effects], ends, colour),
        customdata=[_hover(one, curve) for _, one in some],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _span(done: list[tuple[float, Tried]]) -> dict[str, Any]:
    """Return a wider axis range for values that hardly differ, so that noise does not fill the chart."""
    means = [one.effect.mean for _, one in done if one.effect is not None]
    middle = (min(means) + max(means)) / 2
    return (
        {"range": [middle - LEAST_SPAN, middle + LEAST_SPAN]}
        if max(means) - min(means) < LEAST_SPAN / 100
        else {}
    )


def _kind(one: Tried) -> str:
    return one.verdict if one.verdict in COLOURS else ""


def _cell(one: Tried | None) -> str:
    if one is None or one.effect is None:
        return "" if one is None else "run"
    mark = {"better": " ↑", "worse": " ↓"}.get(one.verdict, "")
    return f"{one.effect.mean:.3f}{mark}"


def _hover(one: Tried | None, curve: Curve) -> str:
    if one is None or one.effect is None:
        return "not tried" if one is None else "needs a run"
    value = f"{words(named(curve.subject, one.point), 80)}: {one.effect.mean:.3f}"
    if one.point == curve.subject.now:
        return f"{value}, in use"
    return f"{value}<br>{figures(found(curve, one))}<br>{one.verdict}"


def _places(values: list[Any]) -> tuple[list[float], dict[str, Any]]:
    """Return the places of values on the axis, evenly spaced if they are far apart, and the axis' ticks."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    least = min((value for value in numbers if value > 0), default=1)
    if len(numbers) < len(values) or (
        min(numbers) >= 0 and max(numbers) >= EVEN_RATIO * least and len(values) > 2
    ):
        return list(range(len(values))), name_axis(
            [words(shown(value), 30) for value in values], showgrid=True
        )
    return [float(value) for value in numbers], {}


def _ordered(values: list[Any]) -> list[Any]:
    """Return distinct values: numbers sorted, others in their order."""
    each = list(dict.fromkeys(values))
    return sorted(each) if all(isinstance(value, int | float) for value in each) else each
