"""Values of a sweep that take a run: what they cost, the button, progress and Stop."""

from __future__ import annotations

import streamlit as st

from core.domain.format import milliseconds
from core.evaluation.finding import count
from core.evaluation.tuning import sweep
from core.evaluation.tuning.sweep import Running, Todo
from core.evaluation.tuning.sweep_grid import shown
from ui.app import say, state, workers
from ui.app.markup import cut
from ui.app.progress import ended, follow
from ui.app.routes import on_page

AUTOMATIC_S = 10.0  # seconds: a run that calls no model and takes no longer starts by itself
MAX_VALUES = 6  # values that are listed


def draw(running: Running, todo: Todo) -> None:
    """Draw what of `todo` can run and its cost, or the run in progress or its result."""
    if not running.done:
        _follow(running)
        return
    asked = f"{running.finished} of {running.total} questions"
    ended(running, "The run", f"Stopped after {asked}; their results are saved.")
    for message, times in sorted(running.errors.items(), key=lambda item: -item[1])[:3]:
        say.warning(f"{times} questions failed: {cut(message, 200)}")
    if not todo:
        return
    why = sweep.lacking(state.engine(), running.subject, todo)
    for reason in dict.fromkeys(why.values()):
        points = {point: ids for point, ids in todo.items() if why.get(point) == reason}
        say.info(f"{_values(points)} cannot be run here: {on_page(reason)}")
    left = {point: ids for point, ids in todo.items() if point not in why}
    asking = sweep.asking(running.subject, left)
    free = {point: ids for point, ids in left.items() if point not in asking}
    if free:
        _free(running, free)
    if asking:
        _asking(running, asking)


def _free(running: Running, todo: Todo) -> None:
    """Draw points that call no model; they start automatically if they are fast."""
    cost = sweep.cost(running.subject, todo)
    known = cost.seconds is not None and cost.seconds <= AUTOMATIC_S
    if known and running.error is None and not running.cancelled and not running.errors:
        running.ask(todo)
        st.rerun()
    about = "" if cost.seconds is None else f", about {milliseconds(1000 * cost.seconds)}"
    label = f"Run {count(cost.points, 'values')}: {cost.questions:,} questions{about}"
    by = workers.choose("sweep_workers")
    st.button(label, key="sweep_run", on_click=running.ask, args=(todo, by))


def _asking(running: Running, todo: Todo) -> None:
    """Draw points that may call a model; they never start automatically."""
    cost = sweep.cost(running.subject, todo)
    estimate = "how many is not known, because the route made none in this evaluation"
    if cost.calls is not None and cost.seconds is not None:
        estimate = f"about {cost.calls:,} model calls and {milliseconds(1000 * cost.seconds)}, less if cached"
    say.caption(
        f"{_values(todo)}: {cost.questions:,} questions need a run that may call a model; {estimate}."
    )
    by = workers.choose("sweep_workers_asking")
    label = f"Run with the model: {cost.questions:,} questions"
    st.button(label, key="sweep_ask", on_click=running.ask, args=(todo, by))


def _follow(running: Running) -> None:
    with st.container(key="sweep_progress"):
        follow(running, "{0.finished} of {0.total} questions run".format, key="sweep_stop")


def _values(todo: Todo) -> str:
    values = [" and ".join(map(shown, point)) for point in todo]
    more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
    return f"Value{'s' * (len(values) > 1)} {', '.join(values[:MAX_VALUES])}{more}"
