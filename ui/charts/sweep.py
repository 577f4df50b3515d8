"""A metric against the values of a parameter, or of two, and against the weight of dense search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.analysis.metrics import titled
from core.corpus.types import DenseWeight
from core.evaluation.finding import figures
from core.evaluation.matrix import LEVEL
from core.evaluation.tuning.sweep import Curve, Tried, named
from core.evaluation.tuning.sweep_grid import shown
from ui.charts import style
from ui.charts.style import KINDS, Figure, chart, words

EVEN_RATIO = 50  # values whose largest is that many times the least are spaced evenly
STYLES = {  # verdict: name, colour, symbol
    "better": ("shown better", KINDS["CHAIN"][1], "circle"),
    "worse": ("shown worse", style.ERROR, "square"),
    "": ("no difference shown", KINDS["GUARDRAIL"][1], "circle-open"),
}
LEAST_SPAN = 0.02  # half the range of the axis if all values are equal
ARROWS = {"better": " ↑", "worse": " ↓"}


def weight_curve(measured: DenseWeight) -> Figure:
    """Draw the mean nDCG@10 of the known items against the weight, with the chosen one and its range."""
    figure = chart(
        220,
        x={"title": "weight of dense; BM25 has the rest", "range": [-0.02, 1.02]},
        y={"title": "nDCG@10 of known items"},
        showlegend=False,
    )
    figure.add_vrect(measured.low, measured.high, fillcolor=style.faint(), line_width=0, layer="below")
    figure.add_vline(measured.weight, line={"color": style.ink(), "width": 1, "dash": "dash"})
    colour = KINDS["RETRIEVER"][1]
    points = [(weight, mean, "") for weight, mean in measured.found]
    look: dict[str, Any] = {"name": "known items", "mode": "lines+markers", "line": {"color": colour}}
    style.add_points(figure, points, "weight %{x:.2f}: %{y:.3f}", {"color": colour}, **look)
    return figure


def noise_slope(
    rows: Sequence[Mapping[str, Any]], harnesses: Sequence[str], retrievers: Sequence[str]
) -> Figure:
    """Draw the recall of each retriever at each level of noise, the harnesses next to each other."""
    levels = sorted({int(row[LEVEL]) for row in rows})
    ticks = [f"{name.replace('_', ' ')}<br>×{level}" for name in harnesses for level in levels]
    figure = chart(300, x=style.name_axis(ticks), y={"title": "recall seen", "range": [0, 1.02]})
    colours = [KINDS["RETRIEVER"][1], KINDS["LLM"][1], KINDS["CHAIN"][1], KINDS["EVALUATOR"][1]]
    for n, (colour, retriever) in enumerate(zip(colours, retrievers, strict=False)):
        own = [row for row in rows if row["retriever"] == retriever]
        look: dict[str, Any] = {"mode": "lines+markers", "line": {"color": colour}}
        for at, harness in enumerate(harnesses):
            found = [row["recall"] for row in own if row["harness"] == harness]
            points = [(at * len(levels) + x + (n - 1.5) / 8, one["mean"], "") for x, one in enumerate(found)]
            means, ends = [one["mean"] for one in found], [one["ci95"] for one in found]
            look |= {"name": retriever, "showlegend": not at, "legendgroup": retriever}
            look["error_y"] = style.error_bars(means, ends, colour)
            style.add_points(figure, points, f"{retriever}: %{{y:.3f}}", {}, **look)
    return figure


def sweep_curve(curve: Curve) -> Figure:
    """Draw the mean at each value of one parameter on the questions used to choose.

    Error bars are the 95% interval of the difference from the value in use: a bar that reaches the dashed
    line shows no difference. The chosen value appears again on the held-out questions.
    """
    places, ticks = _places([one.point[0] for one in curve.tried])
    done = [(x, one.effect.mean, one) for x, one in zip(places, curve.tried, strict=True) if one.effect]
    means = [mean for _, mean, _ in done]
    middle, spread = (min(means) + max(means)) / 2, max(means) - min(means)
    # Values that hardly differ get a wider axis, so that noise does not fill the chart.
    wide = {"range": [middle - LEAST_SPAN, middle + LEAST_SPAN]} if spread < LEAST_SPAN / 100 else {}
    figure = chart(
        360,
        x={"title": words(curve.subject.names[0], 60), **ticks},
        y={"title": titled(curve.metric), "tickformat": ".3f", **wide},
    )
    style.add_line(figure, [x for x, *_ in done], means, {"color": KINDS["RETRIEVER"][1], "width": 2})
    for verdict, (name, colour, symbol) in STYLES.items():
        some = [
            (x, mean, one)
            for x, mean, one in done
            if (one.verdict if one.verdict in STYLES else "") == verdict and one.point != curve.subject.now
        ]
        # The interval of the difference, drawn about the mean in use.
        ends = [
            (before + low, before + high)
            for _, mean, one in some
            if one.effect and (before := one.effect.before) is not None
            for low, high in [one.effect.interval or (mean - before, mean - before)]
        ]
        bars = style.error_bars([mean for _, mean, _ in some], ends, colour)
        points = [(x, mean, _hover(one, curve)) for x, mean, one in some]
        style.add_points(
            figure, points, "%{customdata}", style.outlined(symbol, 10, colour), name=name, error_y=bars
        )
    now = [(x, mean, _hover(one, curve)) for x, mean, one in done if one.point == curve.subject.now]
    for _, mean, _ in now:
        figure.add_hline(y=mean, line={"color": style.ink(), "width": 1, "dash": "dash"})
    diamond = {"symbol": "diamond", "size": 13, "color": style.ink()}
    style.add_points(figure, now, "%{customdata}", diamond, name="in use")
    if curve.held is not None:
        x = next(x for x, _, one in done if one.point == curve.best.point)
        colour = KINDS["TOOL"][1]
        style.add_points(
            figure,
            [(now[0][0], curve.held.before, ""), (x, curve.held.mean, "")],
            "held-out questions: %{y:.3f}",
            {"symbol": "x", "size": 10, "color": colour},
            name="held-out questions, in use and chosen",
            mode="lines+markers",
            line={"color": colour, "dash": "dot"},
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
        x=style.name_axis([words(shown(value), 30) for value in columns], title=words(subject.names[1], 60)),
        y=style.name_axis([words(shown(value), 30) for value in rows], title=words(subject.names[0], 60)),
    )
    style.add_cells(
        figure,
        [[one.effect.mean if one and one.effect else None for one in row] for row in cells],
        text=[[_cell(one) for one in row] for row in cells],
        texttemplate="%{text}",
        customdata=[[_hover(one, curve) for one in row] for row in cells],
        hovertemplate="%{customdata}<extra></extra>",
        hoverongaps=False,
    )
    frames = ((subject.now, "dash", style.ink()), (curve.best.point, "solid", KINDS["LLM"][1]))
    for (row, column), dash, colour in frames:
        x, y = columns.index(column), rows.index(row)
        corners = {"x0": x - 0.48, "x1": x + 0.48, "y0": y - 0.48, "y1": y + 0.48}
        figure.add_shape(type="rect", line={"color": colour, "width": 3, "dash": dash}, **corners)
    return figure


def describe_sweep(curve: Curve, sentences: list[str]) -> str:
    """Describe the chart: its `sentences`, then the mean at each point."""
    points = "; ".join(
        f"{', '.join(map(shown, one.point))}: {f'{one.effect.mean:.3f}' if one.effect else 'needs a run'}"
        for one in curve.tried
    )
    return f"{' '.join(sentences)} {titled(curve.metric)} by {' and '.join(curve.subject.names)}: {points}."


def _cell(one: Tried | None) -> str:
    if one is None or one.effect is None:
        return "" if one is None else "run"
    return f"{one.effect.mean:.3f}{ARROWS.get(one.verdict, '')}"


def _hover(one: Tried | None, curve: Curve) -> str:
    if one is None or one.effect is None:
        return "not tried" if one is None else "needs a run"
    value = f"{words(named(curve.subject, one.point), 80)}: {one.effect.mean:.3f}"
    if one.point == curve.subject.now:
        return f"{value}, in use"
    return f"{value}<br>{figures(one.effect)}<br>{one.verdict}"


def _places(values: list[Any]) -> tuple[list[float], dict[str, Any]]:
    """Return the places of values on the axis, evenly spaced if they are far apart, and the axis' ticks."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    least = min((value for value in numbers if value > 0), default=1)
    far = len(values) > 2 and min(numbers, default=0) >= 0 and max(numbers, default=0) >= EVEN_RATIO * least
    if len(numbers) < len(values) or far:
        names = [words(shown(value), 30) for value in values]
        return list(range(len(values))), style.name_axis(names, showgrid=True)
    return [float(value) for value in numbers], {}


def _ordered(values: list[Any]) -> list[Any]:
    """Return distinct values: numbers sorted, others in their order."""
    each = list(dict.fromkeys(values))
    return sorted(each) if all(isinstance(value, int | float) for value in each) else each
