"""The decision audit of an evaluation: what each route's decisions were worth, and on which questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.analysis.metrics import titled
from core.evaluation import finding
from core.evaluation.audit import audit
from core.evaluation.audit.decisions import Case
from core.evaluation.experiment_store import Evaluation
from ui.app import say
from ui.app.choice import choice
from ui.app.evaluated import once, open_run
from ui.app.help_mark import term
from ui.app.markup import cut, show
from ui.app.plot import plot
from ui.app.routes import title
from ui.charts.intervals import of_findings
from ui.components import tables
from ui.evaluate import new
from ui.evaluate.view import Look, sentences

FIGURE, KIND, SIDE = "evaluate_audit_figure", "evaluate_audit_kind", "evaluate_audit_side"
MAX_SENTENCES = 8  # gains that are told in words; the table has all
SIDES = {"all": "All", "better": "Firing is better", "worse": "Firing is worse", "tied": "No difference"}


def draw(look: Look) -> None:
    """Draw it."""
    evaluation = look.evaluation
    path = evaluation.folder / audit.AUDIT
    if not path.is_file():
        _nothing()
        return
    document, cases = once(
        evaluation,
        *("audit", path.stat().st_mtime),
        compute=lambda: (audit.read(evaluation.folder) or {}, audit.read_cases(evaluation.folder)),
    )
    _routes(document)
    if not document["decisions"]:
        st.info("No decision that can be turned came up on these questions, so there is none to judge.")
        return
    st.subheader("Decisions", anchor=False, help=term("decision audit"))
    figures = list(dict.fromkeys(name for kind in document["decisions"] for name in kind["figures"]))
    if not figures:
        st.info("No figure could be measured both ways on these questions.")
        return
    metric = choice("figure", FIGURE, "Figure", figures, format_func=titled, width=230)
    _decisions(document, metric)
    _questions(evaluation, document["decisions"], cases, metric)


def _nothing() -> None:
    """Draw how to start an audit if the evaluation has none."""
    st.info("This evaluation has no decision audit.")
    st.caption("An audit asks each question again with each decision turned, to show what it gained.")
    if st.button("New evaluation with an audit"):
        new.open_form(ev_audit=True)
        st.rerun()


def _routes(document: Mapping[str, Any]) -> None:
    """Draw the routes' claims, in sentences and in a table."""
    base, routes = title(document["baseline"]), document["routes"]
    texts = [
        finding.sentence(finding.compared(row["planned"], title(name), base, titled(row["claim"])))
        for name, row in routes.items()
        if "claim" in row
    ]
    stopped = ["The audit was stopped before its end; resume it for all questions."]
    show(sentences([*(stopped if document["interrupted"] else []), *(texts or ["No route was audited."])]))
    tables.table(
        _named(audit.routes(document)),
        "evaluate_audit_routes",
        "Routes with what they claim, their figures and their cost",
        pinned="Route",
    )
    baselines = ", ".join(map(title, document["baselines"]))
    facts = f"Baselines: {baselines}. Model: {document['model']['name']}. {document['machine']}."
    say.caption(" ".join([facts, *(f"{warning}." for warning in document["warnings"])]))


def _named(rows: Sequence[audit.Record]) -> list[audit.Record]:
    return [{**row, "Route": title(row["Route"])} for row in rows]


def _kind(row: Mapping[str, Any]) -> str:
    return f"{title(row['route'])}: {row['step']}"


def _decisions(document: Mapping[str, Any], metric: str) -> None:
    """Draw each kind of decision's gain when fired: in sentences, as a chart and as a table."""
    gains = [
        finding.compared(found["gain"], _kind(row), "its other way", titled(metric))
        for row in document["decisions"]
        if (found := row["figures"].get(metric)) and found["gain"]
    ]
    if gains:
        texts = [f"{one.subject}: {finding.figures(one)} when fired." for one in gains]
        show(sentences(texts[:MAX_SENTENCES]))
        plot(of_findings(gains), "evaluate_audit_forest", " ".join(texts))
    else:
        st.caption("No decision fired on a question where this figure is known both ways.")
    tables.table(
        _named(audit.decisions_by(document, metric)),
        f"evaluate_audit_decisions:{metric}",
        f"Decisions by what firing gave in {titled(metric)}",
        pinned="Route",
    )
    st.caption("More seconds is empty where the model calls came from the cache: not measured.")


def _questions(
    evaluation: Evaluation, decisions: Sequence[Mapping[str, Any]], cases: Sequence[Case], metric: str
) -> None:
    """Draw the questions of one kind of decision with both outcomes, and the chosen one's runs."""
    kinds = {f"{row['route']}:{row['step']}": _kind(row) for row in decisions}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = choice("decision", KIND, "Questions of", kinds, width=420)
        mine = [case for case in cases if f"{case.route}:{case.step}" == kind]
        by = {side: [case for case in mine if side in ("all", _side(case, metric))] for side in SIDES}
        counted = {side: f"{SIDES[side]} ({len(some)})" for side, some in by.items()}
        side = choice("side", SIDE, "Which", counted, segmented=True)
    picked = tables.pick(
        [
            {
                "Question": cut(evaluation.questions[case.question].query.text, 240),
                "Decided": case.decision,
                "Fired": "yes" if case.acted else "no",
                f"{titled(metric)} fired": case.fired.get(metric),
                "not fired": case.quiet.get(metric),
                "Gain of firing": case.gain(metric),
                "More calls": case.calls,
                "Left out": case.left_out,
            }
            for case in by[side]
        ],
        by[side],
        f"evaluate_audit_questions:{evaluation.name}:{kind}:{side}:{metric}",
        "Questions with what came of the decision both ways",
    )
    st.caption(f"{len(by[side])} questions. Select a row to open its runs.")
    if picked is None:
        return
    labels = (f"Run as it decided: {picked.decision}", f"Run forced to: {picked.turned_to}")
    with st.container(horizontal=True, vertical_alignment="center"):
        for nth, (label, run) in enumerate(zip(labels, picked.runs, strict=True)):
            if run:
                key, to = f"evaluate_audit_run:{nth}", {"view": "Evaluators", "tab": "Decisions"}
                open_run(evaluation, picked.question, key, label=label, page="steps.py", run=run, **to)


def _side(case: Case, metric: str) -> str:
    gain = case.gain(metric)
    return "" if gain is None else "tied" if abs(gain) < 1e-12 else "better" if gain > 0 else "worse"
