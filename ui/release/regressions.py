"""Questions that people complained of, with the route to ship: a line below the verdict, and a tab."""

from __future__ import annotations

import streamlit as st

from core.evaluation import experiment_store
from core.evaluation.dataset import FAILURES
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels import desk as desks
from core.evaluation.labels import run_labels
from core.evaluation.labels.desk import Desk
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.release.regressions import Regressions, newest, of_evaluation
from ui.app import say, state
from ui.app.evaluated import open_run, remember
from ui.app.help_mark import term
from ui.app.markup import md
from ui.components import tables

SIGNS = {"passed": "✓ passed", "broken": "✗ broke again", "cannot be told": "? cannot be determined"}
NO_SETS = (
    "No question of this corpus was reported yet. “Wrong…” on Compare and Why makes a wrong answer "
    "a question that every later release must pass."
)


def summary(measured: Measured, decision: Decision) -> None:
    """Draw one line for each set below the verdict, or nothing without reported questions."""
    for desk in _sets(measured):
        found = _checked(desk, decision.shown)
        if found is None:
            count = sum(bool(question.complaints) for question in desk.questions)
            say.caption(f"{desk.set.name}: {count} reported questions, not asked with this route yet.")
            continue
        text = found[1].headline(decision.of(found[1].route).title)
        if found[1].broken:
            say.error(f"{text} See the tab Regressions.")
        else:
            say.caption(text)


def draw(measured: Measured, decision: Decision) -> None:
    """Draw each regression set with its questions; those that broke again open in Why."""
    sets = _sets(measured)
    if not sets:
        st.caption(NO_SETS, help=term("regression set"))
    for desk in sets:
        found = _checked(desk, decision.shown)
        st.markdown(f"**{md(desk.set.name)}**", help=term("regression set"))
        title = decision.of(decision.shown).title
        if found is None:
            say.caption(f"{title} was not asked these {len(desk.questions)} questions yet.")
        else:
            st.markdown(md(found[1].headline(decision.of(found[1].route).title)))
            _table(desk, *found)
            say.caption(f"From evaluation {found[0].name}. Evaluate the set again after each change.")
        st.page_link("evaluate.py", label="Evaluate this set", query_params={"labels": desk.set.name})


def _sets(measured: Measured) -> list[Desk]:
    store, corpus = state.store(), measured.figures.corpus
    own = [one.name for one in desks.sets(store) if one.corpus == corpus]
    versions = tuple(desks.version(store, name) for name in own)
    key = ("reported", str(store.path), corpus, versions)
    found: list[Desk] = remember(key, lambda: run_labels.complaint_sets(store, corpus))
    return found


def _checked(desk: Desk, route: str) -> tuple[Evaluation, Regressions] | None:
    """Return the set's newest evaluation with this route, and its outcome."""
    settings, name = state.engine().settings, desk.set.name
    stamps = tuple(
        (one, experiment_store.stamp(experiment_store.place(settings, one)))
        for one in experiment_store.names(settings)
    )

    def check() -> tuple[Evaluation, Regressions] | None:
        evaluation = newest(settings, name, route)
        return (evaluation, of_evaluation(evaluation, route)) if evaluation is not None else None

    found: tuple[Evaluation, Regressions] | None = remember(
        ("regressions", name, route, str(settings.home), stamps), check
    )
    return found


def _table(desk: Desk, evaluation: Evaluation, found: Regressions) -> None:
    order = ("broken", "cannot be told", "passed")
    results = sorted(found.results, key=lambda one: order.index(one.state))
    rows = [
        {
            "": SIGNS[one.state],
            "question": one.text,
            "why": one.why,
            "reported as": ", ".join(FAILURES.get(kind, kind) for kind in one.failures),
            "by": ", ".join(one.who),
        }
        for one in results
    ]
    key = f"release_regressions:{desk.set.name}:{found.route}"
    picked = tables.pick(rows, results, key, "Reported questions with the route to ship")
    if picked is None:
        st.caption("Select a question to open it in Why and see what happened to its passages.")
    else:
        open_run(evaluation, picked.question, f"release_regression_why:{desk.set.name}")
