"""The route to ship against another route, and against the release before."""

from __future__ import annotations

import streamlit as st

from core.analysis.metrics import titled
from core.domain.errors import RouteScopeError
from core.domain.format import between, number, p_value
from core.evaluation.diff.evaluations import mcnemar, rule
from core.evaluation.finding import count
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.report import Worse, opponent, worse_at
from core.evaluation.release.snapshot import Against, compare, read
from ui.app import say
from ui.app.choice import choice
from ui.app.evaluated import open_run
from ui.app.help_mark import term
from ui.app.markup import md
from ui.components import question_diff, tables

ROUTE, OTHER, QUESTION = "release_route", "release_other", "release_question"
UPLOADED = "release_against"
KEPT = "release_snapshot"  # (name, content) of the snapshot that was given last


def worse(measured: Measured, decision: Decision) -> None:
    """Draw the metrics and questions on which the chosen route is worse than another."""
    routes = list(measured.routes)
    if len(routes) < 2:
        st.caption("Only one route was measured, so there is no other to compare it with.")
        return
    begin = decision.chosen or decision.nearest or routes[0]
    with st.container(horizontal=True):
        titles = {one: measured.title(one) for one in routes}
        route = choice("route", ROUTE, "Route", titles, usual=begin, width=320)
        others = {one: title for one, title in titles.items() if one != route}
        rival = opponent(decision, route) or next(iter(others))
        other = choice("other", OTHER, "Against", others, usual=rival, width=320)
    if other == decision.baseline:
        _kinds(decision, route)
    metric, names = decision.criteria.metric, (measured.title(route), measured.title(other))
    lost = worse_at(measured, route, other, metric)
    if lost is None:
        st.caption("The questions cannot be determined: their values are not known for this metric.")
    elif not lost:
        st.markdown(md(f"{names[0]} scores lower than {names[1]} on no question."))
    else:
        st.markdown(md(f"{names[0]} scores lower in {titled(metric)} on {count(len(lost))}, worst first:"))
        _questions(measured, lost, *names)


def _kinds(decision: Decision, route: str) -> None:
    """Draw the modes whose mean is below the baseline's, with the test results."""
    below = sorted(
        (one for one in decision.losses if one.route == route and one.delta < 0), key=lambda one: one.delta
    )
    if not below:
        st.markdown("Its mean is not below the baseline's on any kind of question.")
        return
    shown = [one.mode for one in below if one.high < 0]
    result = f"it is shown to be worse on {', '.join(shown)}" if shown else "none of these losses is shown"
    kinds = count(len(below), "kinds")
    st.markdown(md(f"Its mean is below the baseline's on {kinds} of question; {result}."))
    rows = [
        {
            "kind of question": one.mode,
            "questions": one.n,
            f"difference in {titled(decision.criteria.metric)}": number(one.delta, signed=True),
            "interval": between(one.low, one.high, signed=True),
            "result": "too few questions" if one.blind else "shown worse" if one.high < 0 else "not shown",
        }
        for one in below
    ]
    tables.table(rows, "release_kinds", "Kinds of question with a lower mean")


def _questions(measured: Measured, lost: list[Worse], title: str, other: str) -> None:
    ids = [one.question for one in lost]
    rows = [{"question": one.text, "kind": one.mode, title: one.value, other: one.other} for one in lost]
    key = f"release_worse:{measured.name}:{title}:{other}"
    picked = tables.pick(rows, ids, key, "Questions on which the route scores lower")
    id = tables.keep_pick(picked, "question", QUESTION, ids)
    if id is None:
        st.caption("Select a question to open it in Why and see what happened to its passages.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        open_run(measured.evaluation, id, "release_why")
        say.caption(next(one.text for one in lost if one.question == id))


def snapshot_diff(measured: Measured, decision: Decision) -> Against | None:
    """Return the comparison with the uploaded snapshot, or None without a readable one."""
    uploaded = st.session_state.get(KEPT)
    if uploaded is None:
        return None
    try:
        return compare(read(uploaded[1], uploaded[0]), measured, decision)
    except RouteScopeError:  # shown where it was uploaded
        return None


def against(measured: Measured, decision: Decision) -> None:
    """Draw the comparison with a snapshot of an earlier release."""
    given = st.file_uploader("Snapshot of an earlier release", type="json", key=UPLOADED)
    if given is not None:
        st.session_state[KEPT] = (given.name, given.getvalue())
    uploaded = st.session_state.get(KEPT)
    if uploaded is None:
        st.caption("Upload the snapshot of an earlier release, which “Report and build” wrote.")
        return
    found = compare(read(uploaded[1], uploaded[0]), measured, decision)
    box = {"shown": st.error, "excluded": st.success}.get(found.regression, st.warning)
    box(md(found.summary))
    say.caption(" ".join([f"Snapshot {uploaded[0]} of evaluation {found.name}.", *found.notes]))
    rows = [
        {
            "measure": titled(one.metric),
            "kind of question": one.mode,
            "questions": one.n,
            "now minus then": number(one.delta, signed=True),
            "interval": between(one.low, one.high, signed=True),
            "level": f"{100 * one.level:.3g}%",
            "result": one.verdict,
        }
        for one in found.changes
    ]
    if rows:
        tables.table(rows, "release_changes", "Changes since the release")
    if found.questions is None:
        st.caption("Which questions broke cannot be determined: this snapshot is of metrics alone.")
        return
    exact = f"Exact p-value: {p_value(mcnemar(found.questions))}."
    st.caption(md(rule(found.depth)), help=term("mcnemar", exact))
    question_diff.draw(found.questions, "release_against", {"now": measured.evaluation})
