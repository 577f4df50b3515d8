"""Two runs side by side: in words first, then settings, routes, and one route's trace against its trace."""

from __future__ import annotations

import streamlit as st

from core.analysis.run_diff import RunDiff, RunRouteDiff, headline, run_diff
from core.domain.errors import RouteScopeError
from core.domain.format import milliseconds
from core.domain.types import Run
from core.engine.job import Job
from ui.app import say, state
from ui.app.choice import choice
from ui.app.markup import cut, join, show, tag
from ui.app.progress import follow
from ui.compare.results import at_work
from ui.sessions import pair
from ui.sessions.diff import asked, routes_table, settings_table, words
from ui.sessions.trace_diff import draw_route

OF = "session_of"  # the route that is looked at


def draw(first: str, second: str) -> None:
    """Draw the comparison of two stored runs, or the error in one of the ids."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("All runs", key="back", on_click=pair.back)
        st.button("Swap", key="exchange", on_click=pair.show, args=(second, first))
    runs: list[Run] = []
    for id, which in ((first, "first"), (second, "second")):
        try:
            runs.append(state.find(id)[0])
        except RouteScopeError as error:
            say.error(f"{which.capitalize()} run: {error}")
    if len(runs) < 2:
        return
    before, after = runs
    _heads(before, after)
    if _under_way(before) or _under_way(after):
        return
    diff = run_diff(before, after)
    show(tag("div", tag("p", words(headline(diff)), css="rs-sessions-told"), css="rs"))
    show(tag("div", asked(diff), settings_table(diff), routes_table(diff), css="rs"))
    if diff.routes:
        draw_route(diff, _pick(diff), before, after)


def _under_way(run: Run) -> bool:
    """Return whether the run still runs; if so, draw its progress and redraw the page when it ends."""
    job = state.engine().job(run.id)

    def text(one: Job) -> str:
        return f"{one.finished} of {one.total} routes · {at_work(one)[1]}"

    if follow(job, text, key=f"stop:{run.id}"):
        return True
    if run.status == "running":
        st.info("Another process is still executing this run. The comparison appears when it has ended.")
        st.button("Refresh", key=f"look_again:{run.id}")
        return True
    return False


def _pick(diff: RunDiff) -> RunRouteDiff:
    """Draw the choice of a route whose traces to show, at first the first that differs."""
    ordered = [
        *sorted(diff.differing, key=lambda one: one.same_result),
        *(route for route in diff.routes if route.same),
    ]
    by_name = {route.before.route: route for route in reversed(ordered)}
    names = list(dict.fromkeys(route.before.route for route in ordered))
    name = choice(
        "of",
        OF,
        "Compare traces of",
        names,
        always=True,
        format_func=lambda one: f"{by_name[one].before.title}{'' if by_name[one].same else ' (differs)'}",
        width=360,
    )
    return by_name[name]


def _heads(before: Run, after: Run) -> None:
    """Draw what the two runs are, with a link to each."""
    for column, which, run in zip(st.columns(2), ("First", "Second"), (before, after), strict=True):
        facts = (
            f"{run.created[:19].replace('T', ' ')} UTC · corpus {run.corpus} · {len(run.results)} routes · "
            f"{milliseconds(run.wall_ms)} · model calls {run.settings.get('llm mode', 'not recorded')}"
        )
        with column:
            show(
                tag(
                    "div",
                    join([tag("b", which), ": ", tag("span", cut(run.query.text, 200), dir="auto")]),
                    tag("div", facts, css="dim"),
                    css="rs",
                )
            )
            st.page_link("compare.py", label=f"Open the {which.lower()} run", query_params={"run": run.id})
