"""Questions that people complained of, with the route to ship: a line below the verdict, and a tab."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.domain.errors import RouteScopeError
from core.domain.program import COMMAND
from core.evaluation import experiment_store
from core.evaluation.complaint import FAILURES
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels import desk as desks
from core.evaluation.labels import run_labels
from core.evaluation.labels.desk import Desk
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.regressions import Regressions, newest, of_evaluation
from ui.app import state
from ui.app.evaluated import to_sessions
from ui.app.help_mark import term
from ui.app.markup import md
from ui.components import tables

SIGNS = {"passed": "✓ passed", "broken": "✗ broke again", "cannot be told": "? cannot be determined"}
NO_SETS = (
    "No question of this corpus was reported yet. “Wrong…” on Compare, Why and Sessions makes a wrong answer "
    "a question that every later release must pass."
)


def summary(measured: Measured, decision: Decision) -> None:
    """Draw one line for each set below the verdict, or nothing without reported questions."""
    for desk in _sets(measured):
        found = _checked(desk, _route(decision))
        if found is None:
            count = sum(bool(question.complaints) for question in desk.questions)
            st.caption(md(f"{desk.set.name}: {count} reported questions, not asked with this route yet."))
            continue
        text = md(found[1].headline(decision.of(found[1].route).title))
        if found[1].broken:
            st.error(f"{text} See the tab Regressions.")
        else:
            st.caption(text)


def draw(measured: Measured, decision: Decision) -> None:
    """Draw each regression set with its questions; those that broke again open in Why."""
    sets = _sets(measured)
    if not sets:
        st.caption(NO_SETS, help=term("regression set"))
        return
    for desk in sets:
        found = _checked(desk, _route(decision))
        st.markdown(f"**{md(desk.set.name)}**", help=term("regression set"))
        if found is None:
            _ask(desk, decision, measured)
            continue
        evaluation, checked = found
        st.markdown(md(checked.headline(decision.of(checked.route).title)))
        _table(desk, evaluation, checked)
        _ask(desk, decision, measured, since=evaluation)


def _route(decision: Decision) -> str:
    return decision.shown


def _sets(measured: Measured) -> list[Desk]:
    store = state.engine().store
    corpus = measured.figures.corpus or None
    if store is None or corpus is None:
        return []
    own = [one.name for one in desks.sets(store) if one.corpus == corpus]
    return _of_sets(str(store.path), str(corpus), tuple(desks.version(store, name) for name in own))


@st.cache_resource(max_entries=4, show_spinner=False)
def _of_sets(path: str, corpus: str, versions: tuple[Any, ...]) -> list[Desk]:  # noqa: ARG001 - the cache key
    store = state.engine().store
    return run_labels.complaint_sets(store, corpus) if store is not None else []


def _checked(desk: Desk, route: str) -> tuple[Evaluation, Regressions] | None:
    """Return the set's newest evaluation with this route, and its outcome."""
    settings = state.engine().settings
    stamps = tuple(
        (name, experiment_store.stamp(experiment_store.place(settings, name)))
        for name in experiment_store.names(settings)
    )
    return _newest(desk.set.name, route, str(settings.home), stamps)


@st.cache_resource(max_entries=16, show_spinner="Checking the regressions")
def _newest(
    name: str,
    route: str,
    home: str,  # noqa: ARG001 - part of the cache key
    stamps: tuple[Any, ...],  # noqa: ARG001 - part of the cache key
) -> tuple[Evaluation, Regressions] | None:
    evaluation = newest(state.engine().settings, name, route)
    return (evaluation, of_evaluation(evaluation, route)) if evaluation is not None else None


def _table(desk: Desk, evaluation: Evaluation, found: Regressions) -> None:
    order = ("broken", "cannot be told", "passed")
    rows = sorted(found.results, key=lambda one: order.index(one.state))
    event = tables.show(
        [
            {
                "": SIGNS[one.state],
                "question": one.text,
                "why": one.why,
                "reported as": ", ".join(FAILURES.get(kind, kind) for kind in one.failures),
                "by": ", ".join(one.who),
            }
            for one in rows
        ],
        hide_index=True,
        width="stretch",
        height=min(420, 36 * (len(rows) + 1) + 2),
        on_select="rerun",
        selection_mode="single-row",
        key=f"release_regressions:{desk.set.name}:{found.route}",
        alt="Reported questions with the route to ship",
    )
    picked = [rows[n] for n in event["selection"]["rows"] if n < len(rows)]
    if not picked:
        st.caption("Select a question to open it in Why and see what happened to its passages.")
        return
    if not evaluation.run_id(picked[0].question):
        st.caption("The evaluation saved no run of this question, so it cannot be opened in Why.")
        return
    if st.button("Open in Why", key=f"release_regression_why:{desk.set.name}"):
        try:
            run = to_sessions(evaluation, picked[0].question)
        except RouteScopeError as error:
            st.error(md(str(error)))
            return
        st.switch_page("why.py", query_params={"run": run})


def _ask(desk: Desk, decision: Decision, measured: Measured, since: Evaluation | None = None) -> None:
    """Draw how to ask the questions of the set, or to ask them again."""
    if since is None:
        title = decision.of(_route(decision)).title
        st.caption(md(f"{title} was not asked these {len(desk.questions)} questions yet."))
    else:
        st.caption(md(f"From evaluation {since.name}. Evaluate the set again after each change."))
    st.page_link("evaluate.py", label="Evaluate this set", query_params={"labels": desk.set.name})
    st.code(f"{COMMAND} gate {measured.name} --regressions '{desk.set.name}'", language="bash")
