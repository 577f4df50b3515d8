"""The release compared with a snapshot of an earlier one."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.domain.errors import RouteScopeError
from core.domain.format import between, number, p_value
from core.evaluation.diff.evaluations import mcnemar, rule
from core.evaluation.release.against import Against, Change, compare
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.snapshot import read
from ui.app.help_mark import term
from ui.app.markup import md
from ui.components import question_diff, tables

UPLOADED = "release_against"
KEPT = "release_snapshot"  # (name, content) of the snapshot that was given last


def found(measured: Measured, decision: Decision) -> Against | None:
    """Return the comparison with the uploaded snapshot, or None without a readable one."""
    uploaded = st.session_state.get(KEPT)
    if uploaded is None:
        return None
    try:
        return compare(read(uploaded[1], uploaded[0]), measured, decision)
    except RouteScopeError:  # shown where it was uploaded
        return None


def draw(measured: Measured, decision: Decision) -> None:
    """Draw the comparison with an earlier release."""
    given = st.file_uploader("Snapshot of an earlier release", type="json", key=UPLOADED)
    if given is not None:
        st.session_state[KEPT] = (given.name, given.getvalue())
    uploaded = st.session_state.get(KEPT)
    if uploaded is None:
        st.caption(
            "Upload the snapshot of an earlier release, which “Report and build” or `gate --snapshot` wrote,"
            " to compare the route to ship now with the route shipped then, question by question."
        )
        return
    against = compare(read(uploaded[1], uploaded[0]), measured, decision)
    box = {"shown": st.error, "excluded": st.success}.get(against.regression, st.warning)
    box(md(against.summary))
    st.caption(md(" ".join([f"Snapshot {uploaded[0]} of evaluation {against.name}.", *against.notes])))
    if against.changes:
        tables.show([_row(one) for one in against.changes], hide_index=True, width="stretch")
    if against.questions is None:
        st.caption(
            "Which questions broke cannot be determined: this snapshot is of an earlier version, or of"
            " metrics alone."
        )
        return
    st.caption(
        md(rule(against.depth)),
        help=term("mcnemar", f"Exact p-value: {p_value(mcnemar(against.questions))}."),
    )
    question_diff.draw(against.questions, "release_against", {"now": measured.evaluation})


def _row(one: Change) -> dict[str, Any]:
    return {
        "measure": titled(one.metric),
        "kind of question": one.mode,
        "questions": one.n,
        "now minus then": number(one.delta, signed=True),
        "interval": between(one.low, one.high, signed=True),
        "level": f"{100 * one.level:.3g}%",
        "result": one.verdict,
    }
