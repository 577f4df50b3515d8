"""Sweeps: a parameter of a measured route over a grid of values, with the differences that are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis.metrics import titled
from core.domain.errors import BadInput
from core.domain.types import RouteResult
from core.evaluation.experiment_store import Evaluation, stamp
from core.evaluation.finding import figures
from core.evaluation.tuning import sweep_run
from core.evaluation.tuning.sweep import METRICS, Curve, Fresh, counted, curve, in_words, waiting
from core.evaluation.tuning.sweep import found as finding
from core.evaluation.tuning.sweep_grid import Grid, cells, default, read, shown, written
from core.evaluation.tuning.sweep_split import Split
from core.evaluation.tuning.sweep_subject import Point, Rankings, results, subject
from core.routes.declare import Parameter, Route
from core.routes.registry import routes as known_routes
from ui.app import address, evaluated, opened, routes, state
from ui.app.choice import choice
from ui.app.markup import cut, md, show, table_of, tag
from ui.app.plot import plot
from ui.charts.sweep import describe_sweep, sweep_curve, sweep_map
from ui.tune import sweep_run as sweep_runs
from ui.tune import sweep_save
from ui.tune.test_split import divided

ROUTE, PARAMETER, SECOND, METRIC, GRID = (
    "sweep_route",
    "sweep_parameter",
    "sweep_parameter2",
    "sweep_metric",
    "sweep_grid",
)
NONE = "none"
SOURCES = {  # what people read for where a figure is from
    "in use": "the evaluation",
    "done again": "recomputed",
    "done again and run": "recomputed and run",
    "waits for a run": "needs a run",
}
Where = tuple[str, tuple[float, ...]]  # an evaluation's folder and stamp


def draw() -> None:
    """Draw the tab Sweeps."""
    evaluation = evaluated.chosen()
    if evaluation is not None:
        _of(evaluation)
    opened.link()


def _of(evaluation: Evaluation) -> None:
    offered = [
        name for name in evaluation.routes if name in known_routes() and _parameters(known_routes()[name])
    ]
    if not offered:
        st.subheader("No route of this evaluation has a parameter", anchor=False)
        st.caption("Evaluate a route with parameters, then try their values here.")
        st.page_link("evaluate.py", label="Go to Evaluate")
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        free = [
            name
            for name in offered
            if any(parameter.tunes for parameter in _parameters(known_routes()[name]))
        ]
        usual = (free or offered)[0]
        name = _one("route", ROUTE, "Route", offered, lambda one: cut(routes.title(one), 60), 260, usual)
        route = known_routes()[name]
        names = [parameter.name for parameter in _parameters(route)]
        tuned = [parameter.name for parameter in _parameters(route) if parameter.tunes] or names
        first = _one("parameter", f"{PARAMETER}:{name}", "Parameter", names, _plain, 200, tuned[0])
        others = [NONE, *(one for one in names if one != first)]
        second = _one("parameter2", f"{SECOND}:{name}", "Second parameter", others, _plain, 180, NONE)
        metric = _one("metric", METRIC, "Metric", list(METRICS), titled, 160, METRICS[0])
    chosen = (first,) if second == NONE else (first, second)
    where = (str(evaluation.folder), stamp(evaluation.folder))
    rankings = _rankings(where, name, chosen, evaluation)
    points = _grids(route, chosen, rankings.subject.now)
    if points is None:
        return
    parts = divided(rankings.subject.labelled, tuple(rankings.subject.way.results))
    if parts is None:
        return
    running = sweep_run.running(state.engine(), rankings.subject)
    fresh = dict(running.rankings)
    _measure(rankings, points, metric)
    todo = waiting(rankings, points, metric, fresh)
    sweep_runs.draw(running, todo)
    key = (*where, name, chosen, points, metric, tuple(fresh), parts)
    found = _curve(key, rankings, points, metric, fresh, parts)
    _shown(found)
    sweep_save.draw(found, route)


def _measure(rankings: Rankings, points: tuple[Point, ...], metric: str) -> None:
    """Measure each new point with progress, until another choice is made."""
    new = [point for point in points if not rankings.measured(point)]
    if not new:
        return
    bar = st.progress(0.0, "Trying the values")
    for at, point in enumerate(new):
        bar.progress(at / len(new), f"Trying the values: {at} of {len(new)}")
        rankings.stored(point, metric)
    bar.empty()


def _parameters(route: Route) -> list[Parameter]:
    """Return the parameters whose values can be listed, that is all but free text."""
    return [parameter for parameter in route.parameters if parameter.type is not str or parameter.choices]


def _one(
    name: str,
    key: str,
    label: str,
    options: list[str],
    said: Callable[[str], str],
    width: int,
    first: str | None = None,
) -> str:
    """Draw a choice kept in the address, which leaves out the default: `first`, or else the first option."""
    return choice(
        name, key, label, options, usual=first, always=name == "route", format_func=said, width=width
    )


def _grids(route: Route, chosen: tuple[str, ...], now: Point) -> tuple[Point, ...] | None:
    """Draw a field for each parameter and return the points to try; None if one is invalid."""
    by_name = {parameter.name: parameter for parameter in route.parameters}
    grids: list[Grid] = []
    try:
        for at, (column, name) in enumerate(zip(st.columns(len(chosen)), chosen, strict=True)):
            with column:
                grids.append(_grid(route.name, by_name[name], now[at], at, paired=len(chosen) > 1))
        if len(chosen) == 1:
            address.keep("grid2", None)
            return tuple((value,) for value in grids[0])
        return cells(grids[0], grids[1])
    except BadInput as error:
        st.error(md(str(error)))
        return None


def _grid(route: str, parameter: Parameter, now: Any, at: int, *, paired: bool) -> Grid:
    param, key = ("grid", "grid2")[at], f"{GRID}:{route}:{parameter.name}:{paired}"
    usual = written(default(parameter, now, paired=paired))
    address.take(param, key, str)
    if not str(st.session_state.get(key) or "").strip():
        st.session_state[key] = usual
    text: str = st.text_input(
        f"Values of {md(parameter.name)}",
        key=key,
        persist_state="session",
        help=md(f"{parameter.help}. Enter 0, 0.1, 0.2 or 0..1 step 0.1. In use: {shown(now)}"),
    )
    address.keep(param, text if text != usual else None)
    return read(text, parameter, route)


def _shown(found: Curve) -> None:
    """Draw the findings, the chart and the table."""
    sentences = in_words(found)
    body = tag(
        "div",
        *(tag("p", tag("b", one) if n == len(sentences) - 1 else one) for n, one in enumerate(sentences)),
        css="rs rs-sweep-words",
    )
    show(body)
    alike = {one.effect.delta for one in found.tried if one.effect}
    if alike == {0.0} and not found.waiting:
        st.caption(f"{titled(found.metric)} is the same at every value; the parameter has no effect here.")
    build = sweep_curve if len(found.subject.names) == 1 else sweep_map
    plot(build(found), "sweep_chart", describe_sweep(found, sentences), table=False)
    st.caption(md(_legend(found)))
    st.caption(md(counted(found)))
    with st.expander("Show as a table"):
        show(_table(found))


def _legend(found: Curve) -> str:
    if len(found.subject.names) == 2:
        return (
            "Dashed frame: in use. Solid frame: highest. Arrow: shown to be better or worse, adjusted for "
            "all pairs tried. Cells without an arrow show no difference from the values in use."
        )
    return (
        "Bar: 95% interval of the difference from the value in use; one that reaches the dashed line shows "
        "no difference. Colour: the result after adjusting for all values tried."
    )


def _table(found: Curve) -> Markup:
    names = found.subject.names
    heads = (*names, titled(found.metric), "difference", "p, adjusted", "", "questions", "from")
    head = tag(
        "tr", *(tag("th", cut(one, 40), css="num" if 0 < n < 5 else "") for n, one in enumerate(heads))
    )
    body = []
    for one in found.tried:
        effect = one.effect
        in_use = one.point == found.subject.now
        css = {"better": "up", "worse": "down"}.get(one.verdict, "dim")
        body.append(
            tag(
                "tr",
                *(tag("td", cut(shown(value), 40)) for value in one.point),
                tag("td", "–" if effect is None else f"{effect.mean:.3f}", css="num"),
                tag("td", "–" if effect is None or in_use else figures(finding(found, one)), css="num"),
                tag("td", "–" if one.p_holm is None else f"{one.p_holm:.3f}", css="num"),
                tag("td", "in use" if in_use else one.verdict, css=css),
                tag("td", "–" if effect is None else str(effect.n)),
                tag("td", _from(one.by, one.waiting, one.failed)),
            )
        )
    table = table_of(head, body)
    return tag("div", table, css="rs rs-sweep-table")


def _from(by: str, waiting: int, failed: int) -> str:
    source = SOURCES.get(by, by)
    source += f", {waiting} questions" if waiting else ""
    return f"{source}; {failed} failed" if failed else source


def _plain(name: str) -> str:
    return cut(name.replace("_", " "), 40)


def _rankings(where: Where, route: str, parameters: tuple[str, ...], evaluation: Evaluation) -> Rankings:
    return _measured(where, route, parameters, evaluation, _loaded(where, route, evaluation))


@st.cache_resource(max_entries=16, show_spinner=False)
def _measured(
    where: Where,  # noqa: ARG001 - part of the cache key
    route: str,
    parameters: tuple[str, ...],
    _evaluation: Evaluation,
    _results: dict[str, RouteResult],
) -> Rankings:
    return Rankings(subject(_evaluation, route, parameters, loaded=_results))


@st.cache_resource(max_entries=4, show_spinner="Reading the route's steps")
def _loaded(where: Where, route: str, _evaluation: Evaluation) -> dict[str, RouteResult]:  # noqa: ARG001
    labelled = [id for id in _evaluation.questions if _evaluation.labelled.labelled(id)]
    return results(_evaluation, route, labelled)


@st.cache_resource(max_entries=32, show_spinner="Trying the values")
def _curve(
    key: tuple[object, ...],  # noqa: ARG001 - stands for the arguments that cannot be hashed
    _rankings: Rankings,
    _points: tuple[Point, ...],
    _metric: str,
    _fresh: Fresh,
    _parts: Split,
) -> Curve:
    return curve(_rankings, _points, _metric, _fresh, parts=_parts)
