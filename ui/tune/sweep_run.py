"""Values of a sweep that take a run: what they cost, the button, progress and Stop."""

from __future__ import annotations

import streamlit as st

from core.domain.format import milliseconds
from core.domain.program import COMMAND
from core.evaluation.tuning import sweep_run
from core.evaluation.tuning.sweep_grid import shown
from core.evaluation.tuning.sweep_run import Running, Todo
from ui.app import redraw, state, workers
from ui.app.markup import cut, md
from ui.app.progress import progress

AUTOMATIC_S = 10.0  # seconds: a run that calls no model and takes no longer starts by itself
POLL_S = 0.5  # seconds between looks at one that is running
MAX_VALUES = 6  # values that are listed


def draw(running: Running, todo: Todo) -> None:
    """Draw what of `todo` can run and its cost, or the run in progress or its result."""
    if not running.done:
        with st.container(key="sweep_progress"):
            _follow(running)
        return
    _ended(running)
    if not todo:
        return
    why = sweep_run.lacking(state.engine(), running.subject, todo)
    for reason in dict.fromkeys(why.values()):
        points = {point: ids for point, ids in todo.items() if why.get(point) == reason}
        st.info(md(f"{_values(points)} cannot be run here: {reason}"))
    left = {point: ids for point, ids in todo.items() if point not in why}
    asking = sweep_run.asking(running.subject, left)
    free = {point: ids for point, ids in left.items() if point not in asking}
    if free:
        _free(running, free)
    if asking:
        _asking(running, asking)


def _free(running: Running, todo: Todo) -> None:
    """Draw points that call no model; they start automatically if they are fast."""
    cost = sweep_run.cost(running.subject, todo)
    known = cost.seconds is not None and cost.seconds <= AUTOMATIC_S
    if known and running.error is None and not running.cancelled and not running.errors:
        running.ask(todo)
        with st.container(key="sweep_progress"):
            _follow(running)
        return
    about = "" if cost.seconds is None else f", about {milliseconds(1000 * cost.seconds)}"
    st.caption(
        md(
            f"{_values(todo)}: the results cannot be computed from the stored steps. You can run the route, "
            "without a language model."
        )
    )
    by = workers.choose("sweep_workers")
    many = f"{cost.points} value{'s' * (cost.points > 1)}"
    st.button(
        f"Run {many}: {cost.questions} questions{about}",
        key="sweep_run",
        on_click=running.ask,
        args=(todo, by),
    )


def _asking(running: Running, todo: Todo) -> None:
    """Draw points that may call a model; they never start automatically."""
    cost = sweep_run.cost(running.subject, todo)
    if cost.calls is None or cost.seconds is None:
        estimate = "the number of calls is not known, because the route made none in this evaluation"
    else:
        estimate = (
            f"about {cost.calls} model calls and {milliseconds(1000 * cost.seconds)}, estimated from this "
            "evaluation; cached answers take less"
        )
    st.caption(
        md(f"{_values(todo)}: {cost.questions} questions need a run that may call a model; {estimate}.")
    )
    by = workers.choose("sweep_workers_asking")
    st.button(
        f"Run with the model: {cost.questions} questions",
        key="sweep_ask",
        on_click=running.ask,
        args=(todo, by),
    )
    about = running.subject
    grids = zip(about.names, zip(*todo, strict=True), strict=True)
    given = " ".join(
        f"--grid '{name}={', '.join(dict.fromkeys(map(shown, values)))}'" for name, values in grids
    )
    parameters = " ".join(f"{about.route}.{name}" for name in about.names)
    st.caption("Or on the command line:")
    st.code(f"{COMMAND} sweep {about.evaluation.name} {parameters} {given} --ask", language=None)


@st.fragment(run_every=POLL_S)
def _follow(running: Running) -> None:
    if running.done:
        redraw.page()
    progress(running, f"{running.finished} of {running.total} questions run", key="sweep_stop")


def _ended(running: Running) -> None:
    """Draw the result of this process' last run."""
    if running.error:
        st.error(md(f"The run failed: {running.error}"))
    elif running.cancelled:
        st.caption(f"Stopped after {running.finished} of {running.total} questions; their results are saved.")
    for message, count in sorted(running.errors.items(), key=lambda item: -item[1])[:3]:
        st.warning(md(f"{count} questions failed: {cut(message, 200)}"))


def _values(todo: Todo) -> str:
    values = [" and ".join(map(shown, point)) for point in todo]
    more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
    return f"Value{'s' * (len(values) > 1)} {', '.join(values[:MAX_VALUES])}{more}"
