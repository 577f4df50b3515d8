"""Two runs side by side: in words first, then settings, routes, and one route's trace against its trace."""

from __future__ import annotations

import streamlit as st

from core.analysis.run_diff import run_diff
from core.domain.format import milliseconds
from core.domain.types import Run
from core.engine.job import Job
from ui.app import say, state
from ui.app.choice import choice
from ui.app.markup import cut, show, tag
from ui.app.progress import follow
from ui.compare.results import at_work
from ui.sessions import diff as drawn


def of(first: str, second: str) -> None:
    """Compare two runs, which the address alone keeps."""
    st.query_params.from_dict({"a": first, "b": second})


def to_list() -> None:
    """Draw the button that returns to the list of all runs."""
    st.button("All runs", key="back", on_click=st.query_params.clear)


def draw(first: str, second: str) -> None:
    """Draw the comparison of two stored runs, or the error in one of the ids."""
    with st.container(horizontal=True, vertical_alignment="center"):
        to_list()
        st.button("Swap", key="exchange", on_click=of, args=(second, first))
    runs: list[Run] = []
    for id, which in ((first, "First"), (second, "Second")):
        with say.errors(lambda why, which=which: st.error(f"{which} run: {why}")):  # type: ignore[misc]
            runs.append(state.find(id)[0])
    if len(runs) < 2:
        return
    for column, which, run in zip(st.columns(2), ("First", "Second"), runs, strict=True):
        facts = (
            f"{run.created[:19].replace('T', ' ')} UTC · corpus {run.corpus} · {len(run.results)} routes · "
            f"{milliseconds(run.wall_ms)} · model calls {run.settings.get('llm mode', 'not recorded')}"
        )
        with column:
            question = tag("div", tag("b", which), ": ", tag("span", cut(run.query.text, 200), dir="auto"))
            show(tag("div", question, tag("div", facts, css="dim"), css="rs"))
            st.page_link("compare.py", label=f"Open the {which.lower()} run", query_params={"run": run.id})
    if any(map(_under_way, runs)):
        return
    diff = run_diff(*runs)
    show(drawn.runs(diff))
    if not diff.routes:
        return
    ordered = sorted(diff.routes, key=lambda one: (one.same, one.same_result))
    by_name = {one.before.route: one for one in reversed(ordered)}
    by_name = {one.before.route: by_name[one.before.route] for one in ordered}
    named = {id: f"{one.before.title}{' (differs)' * (not one.same)}" for id, one in by_name.items()}
    name = choice("of", "session_of", "Compare traces of", named, always=True, width=360)
    show(drawn.route(diff, by_name[name], *runs))


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
