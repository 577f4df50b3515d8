"""Access: whether text of documents that a group may not see gets into the steps of routes."""

from __future__ import annotations

import threading
from typing import Any

import streamlit as st

from core.corpus import catalogue
from core.corpus.build import Progress
from core.domain import filters
from core.evaluation.access import NOTE, audit_access, own_questions
from core.routes.registry import routes
from ui.app import corpora, say, state
from ui.app.markup import md
from ui.components import tables


def draw(name: str) -> None:
    """Draw the choice of a group, the button, and the table of the last test."""
    st.info(NOTE)
    rules = state.engine().settings.access
    groups = sorted({group for values in rules.values() for named in values.values() for group in named})
    if not groups:
        st.markdown(
            "There are no access rules. Add a table to the settings file for each metadata field, with the"
            ' groups that may see a value: `[access.department]`, then `hr = ["hr", "board"]`.'
        )
        return
    group = st.selectbox("Group", groups, key="access_group", width=240, accept_new_options=True)
    if not group:
        return
    called, settings = f"{name} access as {group}", state.engine().settings

    def work(progress: Progress, cancel: threading.Event) -> dict[str, Any]:
        engine = state.engine()
        return audit_access(
            engine,
            name,
            group,
            engine.settings.access,
            [route for route in routes().values() if not route.asks()],
            labelled=own_questions(engine.corpus(name), catalogue.source(name, settings=settings).path),
            progress=progress,
            cancel=cancel,
        ).document()

    filters.conditions(settings.access, group)  # an error is shown at once
    st.caption("Asks labelled questions and made-up canaries by all routes that ask no model.")
    build = corpora.background(called, "The test is running", "Test access", "access_start", work)
    if build is not None:
        _table(build.result)


def _table(found: dict[str, Any]) -> None:
    asked = found["questions"]
    say.caption(
        f"{asked['labelled']} labelled questions and {asked['canaries']} canaries, as {found['as']}. "
        f"Forbidden text got into {found['leaked_after']} steps after the filter."
    )
    rows = [
        {
            "Route": route["route"],
            "Step": step["step"],
            "Asked": route["asked"],
            "Leaked unfiltered": step["before"],
            "Leaked filtered": step["after"],
            "Example": ", ".join(f"{one['question']}: {one['passage']}" for one in step["examples"]),
        }
        for route in found["routes"]
        for step in route["steps"]
    ]
    rows.sort(key=lambda row: -row["Leaked filtered"])
    tables.table(rows, "access_leaks", "Leaks by route and step, filtered ones first")
    if failed := [f"{one['route']} ({one['problem']})" for one in found["routes"] if one["failed"]]:
        say.warning(f"Some questions have no result, so nothing is shown for them: {'; '.join(failed)}")
    if untested := [f"{one['route']} ({one['problem']})" for one in found["routes"] if not one["asked"]]:
        with st.expander(f"{len(untested)} routes were not tested"):
            st.markdown(md("; ".join(untested)))
