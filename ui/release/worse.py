"""Metrics and questions on which the route to ship is worse than another."""

from __future__ import annotations

import streamlit as st

from core.analysis.metrics import titled
from core.domain.format import between, number
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.report import Worse, opponent, worse_at
from ui.app import address
from ui.app.choice import choice
from ui.app.evaluated import to_sessions
from ui.app.markup import md
from ui.components import tables

ROUTE, OTHER, QUESTION = "release_route", "release_other", "release_question"


def draw(measured: Measured, decision: Decision) -> None:
    """Draw what the chosen route does worse than another."""
    routes = list(measured.routes)
    if len(routes) < 2:
        st.caption("Only one route was measured, so there is no other to compare it with.")
        return
    begin = decision.chosen or decision.nearest or routes[0]
    with st.container(horizontal=True):
        route = _choice("Route", "route", ROUTE, routes, begin, measured)
        others = [one for one in routes if one != route]
        other = _choice("Against", "other", OTHER, others, opponent(decision, route) or others[0], measured)
    metric = decision.criteria.metric
    if other == decision.baseline:
        _kinds(decision, route)
    lost = worse_at(measured, route, other, metric)
    if lost is None:
        st.caption("The questions cannot be determined: their values are not known for this metric.")
        return
    if not lost:
        st.markdown(md(f"{measured.title(route)} scores lower than {measured.title(other)} on no question."))
        return
    count = f"{len(lost)} question" + "s" * (len(lost) > 1)
    st.markdown(md(f"{measured.title(route)} scores lower in {titled(metric)} on {count}, worst first:"))
    _questions(measured, lost, measured.title(route), measured.title(other))


def _choice(label: str, parameter: str, key: str, options: list[str], begin: str, measured: Measured) -> str:
    return choice(parameter, key, label, options, usual=begin, width=320, format_func=measured.title)


def _kinds(decision: Decision, route: str) -> None:
    """Return the modes whose mean is below the baseline's, with the test results."""
    below = sorted(
        (one for one in decision.losses if one.route == route and one.delta < 0), key=lambda one: one.delta
    )
    if not below:
        st.markdown(md("Its mean is not below the baseline's on any kind of question."))
        return
    shown = [one.mode for one in below if one.high < 0]
    result = f"it is shown to be worse on {', '.join(shown)}" if shown else "none of these losses is shown"
    count = "1 kind" if len(below) == 1 else f"{len(below)} kinds"
    st.markdown(md(f"Its mean is below the baseline's on {count} of question; {result}."))
    tables.show(
        [
            {
                "kind of question": one.mode,
                "questions": one.n,
                f"difference in {titled(decision.criteria.metric)}": number(one.delta, signed=True),
                "interval": between(one.low, one.high, signed=True),
                "result": "too few questions"
                if one.blind
                else "shown worse"
                if one.high < 0
                else "not shown",
            }
            for one in below
        ],
        hide_index=True,
        width="stretch",
    )


def _questions(measured: Measured, lost: list[Worse], title: str, other: str) -> None:
    rows = [{"question": one.text, "kind": one.mode, title: one.value, other: one.other} for one in lost]
    figures = st.column_config.NumberColumn(format="%.3f")
    event = tables.show(
        rows,
        hide_index=True,
        width="stretch",
        height=min(420, 36 * (len(rows) + 1) + 2),
        on_select="rerun",
        selection_mode="single-row",
        key=f"release_worse:{measured.name}:{title}:{other}",
        column_config={title: figures, other: figures},
    )
    ids = [one.question for one in lost]
    if picked := [ids[n] for n in event["selection"]["rows"] if n < len(ids)]:
        st.session_state[QUESTION] = picked[0]
    address.take("question", QUESTION, address.one_of(ids))
    id = st.session_state.get(QUESTION)
    address.keep("question", id if id in ids else None)
    if id not in ids:
        st.caption("Select a question to open it in Why and see what happened to its passages.")
        return
    evaluation = measured.evaluation
    if evaluation is None or not evaluation.run_id(id):
        st.caption("The evaluation saved no run of this question, so it cannot be opened in Why.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Open in Why", key="release_why"):
            st.switch_page("why.py", query_params={"run": to_sessions(evaluation, id)})
        st.caption(md(next(one.text for one in lost if one.question == id)))
