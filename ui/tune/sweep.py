"""Sweeps: a parameter of a measured route over a grid of values, with the differences that are shown."""

from __future__ import annotations

from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis.metrics import titled
from core.domain.errors import BadInput
from core.domain.types import RouteResult
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import figures
from core.evaluation.tuning import sweep
from core.evaluation.tuning.saving import Setting
from core.evaluation.tuning.sweep import METRICS, Curve, counted, curve, in_words, named, note, waiting
from core.evaluation.tuning.sweep_grid import Grid, cells, default, read, shown, written
from core.evaluation.tuning.sweep_subject import Point, Rankings, results, subject
from core.routes.declare import Parameter, Route
from core.routes.registry import routes as known_routes
from ui.app import address, evaluated, next_run, outcome, routes, say, state
from ui.app.choice import choice
from ui.app.markup import cut, md, show, table, tag
from ui.app.plot import plot
from ui.charts.sweep import describe_sweep, sweep_curve, sweep_map
from ui.components import preset_saving
from ui.tune import sweep_run as sweep_runs
from ui.tune.test_split import divided

ROUTE, PARAMETER, SECOND, METRIC, GRID, POINT = (
    f"sweep_{name}" for name in ("route", "parameter", "parameter2", "metric", "grid", "point")
)
NONE = "none"
CSS = {"better": "up", "worse": "down"}
SOURCES = {  # what people read for where a figure is from
    "in use": "the evaluation",
    "done again": "recomputed",
    "done again and run": "recomputed and run",
    "waits for a run": "needs a run",
}


def draw(evaluation: Evaluation) -> None:
    """Draw the choice of parameters and values, and what each value measures."""
    by = {
        name: named
        for name in evaluation.routes
        if name in known_routes() and (named := _parameters(known_routes()[name]))
    }
    if not by:
        st.subheader("No route of this evaluation has a parameter", anchor=False)
        st.caption("Evaluate a route with parameters, then try their values here.")
        tunable = [one.name for one in known_routes().values() if _parameters(one) and not one.asks()]
        evaluated.begin("Evaluate routes with parameters", "sweep_evaluate", tunable)
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        usual = next((name for name in by if any(one.tunes for one in by[name])), next(iter(by)))
        named_ = {one: cut(routes.title(one), 60) for one in by}
        name = choice("route", ROUTE, "Route", named_, usual=usual, always=True, width=260)
        route, names = known_routes()[name], [one.name for one in by[name]]
        tuned = next((one.name for one in by[name] if one.tunes), names[0])
        plain: dict[str, Any] = {"format_func": lambda one: cut(one.replace("_", " "), 40)}
        key = f"{PARAMETER}:{name}"
        first = choice("parameter", key, "Parameter", names, usual=tuned, width=200, **plain)
        others = [NONE, *(one for one in names if one != first)]
        second = choice("parameter2", f"{SECOND}:{name}", "Second parameter", others, width=180, **plain)
        metric = choice("metric", METRIC, "Metric", METRICS, format_func=titled, width=160)
    chosen = (first,) if second == NONE else (first, second)
    rankings = _rankings(evaluation, name, chosen)
    points = _grids(route, chosen, rankings.subject.now)
    if points is None:
        return
    parts = divided(rankings.subject.labelled, tuple(rankings.subject.results))
    if parts is None:
        return
    running = sweep.running(state.engine(), rankings.subject)
    fresh = dict(running.rankings)
    _measure(rankings, points, metric)
    sweep_runs.draw(running, waiting(rankings, points, metric, fresh))
    found: Curve = evaluated.once(
        evaluation,
        *("sweep", name, chosen, points, metric, tuple(fresh), parts),
        compute=lambda: curve(rankings, points, metric, fresh, parts=parts),
    )
    _shown(found)
    _use(found, route)


def _rankings(evaluation: Evaluation, route: str, parameters: tuple[str, ...]) -> Rankings:
    def loaded() -> dict[str, RouteResult]:
        labelled = [id for id in evaluation.questions if evaluation.labelled.labelled(id)]
        return results(evaluation, route, labelled)

    known: dict[str, RouteResult] = evaluated.once(evaluation, "steps of", route, compute=loaded)
    return evaluated.once(
        evaluation,
        *("rankings", route, parameters),
        compute=lambda: Rankings(subject(evaluation, route, parameters, loaded=known)),
    )


def _measure(rankings: Rankings, points: tuple[Point, ...], metric: str) -> None:
    """Measure each new point, until another choice is made."""
    if new := [point for point in points if not rankings.measured(point)]:
        with st.spinner(f"Trying {len(new)} values", show_time=True):
            for point in new:
                rankings.stored(point, metric)


def _parameters(route: Route) -> list[Parameter]:
    """Return the parameters whose values can be listed, that is all but free text."""
    return [parameter for parameter in route.parameters if parameter.type is not str or parameter.choices]


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
        say.error(error)
        return None


def _grid(route: str, parameter: Parameter, now: Any, at: int, *, paired: bool) -> Grid:
    param, key = ("grid", "grid2")[at], f"{GRID}:{route}:{parameter.name}:{paired}"
    usual = written(default(parameter, now, paired=paired))
    address.take(param, key, str)
    if not str(st.session_state.get(key) or "").strip():
        st.session_state[key] = usual
    note = md(f"{parameter.help}. Enter 0, 0.1, 0.2 or 0..1 step 0.1. In use: {shown(now)}")
    label = f"Values of {md(parameter.name)}"
    text: str = st.text_input(label, key=key, persist_state="session", help=note)
    address.keep(param, text if text != usual else None)
    return read(text, parameter, route)


def _shown(found: Curve) -> None:
    """Draw the finding, the chart, what it rests on, and the table."""
    *rest, last = sentences = in_words(found)
    show(tag("div", tag("p", tag("b", last), " ", *rest[:1]), css="rs rs-sweep-words"))
    alike = {one.effect.estimate for one in found.tried if one.effect}
    if alike == {0.0} and not found.waiting:
        st.caption(f"{titled(found.metric)} is the same at every value; the parameter has no effect here.")
    one_parameter = len(found.subject.names) == 1
    figure = sweep_curve(found) if one_parameter else sweep_map(found)
    plot(figure, "sweep_chart", describe_sweep(found, sentences), table=False)
    legend = "Dashed frame: in use. Solid frame: highest. Arrow: shown better or worse, adjusted for all."
    if one_parameter:
        legend = "Bar: 95% interval of the difference from the value in use. Colour: adjusted for all values."
    say.caption(" ".join([*rest[1:], legend, counted(found)]))
    with st.expander("Show as a table"):
        show(tag("div", _table(found), css="rs rs-sweep-table"))


def _table(found: Curve) -> Markup:
    names = [cut(name, 40) for name in found.subject.names]
    heads = (*names, titled(found.metric), "difference", "p, adjusted", "", "questions", "from")
    rows = []
    for one in found.tried:
        effect, in_use = one.effect, one.point == found.subject.now
        source = SOURCES.get(one.by, one.by) + (f", {one.waiting} questions" if one.waiting else "")
        rows.append(
            (
                *(cut(shown(value), 40) for value in one.point),
                "–" if effect is None else f"{effect.mean:.3f}",
                "–" if effect is None or in_use else figures(effect),
                "–" if effect is None or effect.p is None else f"{effect.p:.3f}",
                ("in use" if in_use else one.verdict, CSS.get(one.verdict, "dim")),
                "–" if effect is None else str(effect.n),
                f"{source}; {one.failed} failed" if one.failed else source,
            )
        )
    return table(heads, rows, numbers=range(len(names), len(names) + 3))


def _use(found: Curve, route: Route) -> None:
    """Draw the choice of a value and the two places to save it: the next run, and a preset."""
    about = found.subject
    st.markdown("##### Use a value")
    points = [one.point for one in found.tried]
    key = f"{POINT}:{about.route}:{','.join(about.names)}"
    if st.session_state.get(key) not in points:
        st.session_state[key] = found.best.point if found.holds else about.now
    corpus, mine = str(about.evaluation.spec["corpus"]), f"sweep:{route.name}"

    def words(point: Point) -> str:
        mark = " · in use" if point == about.now else " · highest" if point == found.best.point else ""
        return cut(named(about, point), 60) + mark

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        given: Any = {"width": 300, "persist_state": "session", "format_func": words}
        point: Point = st.selectbox("Value", points, key=key, **given)
        args = (mine, route, about.values(point), corpus)
        st.button("Use in Compare", key="sweep_keep", on_click=next_run.use, args=args)
    why = note(found, point)
    say.caption(f"{why}.")
    outcome.draw(mine, "sweep_undo_keep")
    chosen = Setting(about.route, about.values(point))
    preset_saving.offer("sweep", chosen, corpus, why, f"{about.evaluation.name} parameters")
