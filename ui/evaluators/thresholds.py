"""Decisions that the thresholds on the page would make on the corpus' labelled questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.analysis.run_view import Recorded, below, gradings
from core.analysis.what_if import grading as what_if
from core.domain.errors import RouteScopeError
from core.domain.outputs import Grading
from core.domain.types import RouteResult, Run
from core.evaluation.dataset import LabelledSet
from core.evaluation.tuning import batch_run as surveys
from core.evaluation.tuning import calibrate, threshold_cases
from core.evaluation.tuning.calibrate import Worth
from core.evaluation.tuning.threshold_cases import Target
from core.routes.registry import routes
from ui.app import account, evaluated, opening, say, state
from ui.app.choice import choice
from ui.app.markup import cut, md, show, tag
from ui.app.plot import plot
from ui.charts.grades import calibration_curves
from ui.charts.waterfall import asks_model
from ui.components import batch_run, tables
from ui.evaluators.grades import Edges

SPLIT, EDGE = "threshold_split", "threshold_edge"
EDGES = ("high", "low")
Measured = tuple[LabelledSet, Mapping[str, RouteResult]]  # with the results by question
STORED_RUNS = 300  # of a corpus, the newest, that are looked through for labelled questions
OVERFIT = (
    "Choose thresholds on dev questions. A threshold looks better than it is when you measure it on the "
    "questions you chose it on, above all on test questions."
)


def draw(run: Run, result: RouteResult, step: Recorded[Grading], edges: Edges) -> None:
    """Draw what thresholds would decide on the corpus' labelled questions, or how to get that."""
    show(tag("div", tag("h3", "On the labelled questions", css="rs-part"), css="rs"))
    grading = step.output
    if not what_if.by_best(grading):
        st.caption("Only available for steps that decide by their best grade and two thresholds.")
        return
    if result.route not in routes():
        say.caption(f"This version has no route {cut(result.route, 60)}, so it cannot be rerun.")
        return
    if asks_model(result, step.span):
        found, how = _stored(run, result, step), "from {} stored runs of labelled questions"
    else:
        found, how = None, "run now, without a model"
        known = batch_run.batch_ran(run.corpus, result, dict(result.parameters), "grades")
        if known is None:
            st.caption(
                "Runs every labelled question through this route, without a language model or the web."
            )
        else:
            by = {id: one[result.route] for id, one in known.results.items() if result.route in one}
            found = known.labelled, by
    if found is not None:
        labelled, results = found
        targets = _targets(labelled, results, step.span.name)
        asked = len(targets[0].cases) if targets else 0
        out = calibrate.left_out(targets[0], len(labelled.questions)) if targets else ""
        say.caption(f"{asked} questions, {how.format(asked)}. {out}")
        if asked:
            _show(targets, labelled, (grading.low, grading.high), edges)


def _targets(labelled: LabelledSet, results: Mapping[str, RouteResult], step: str) -> list[Target]:
    """Return both thresholds of a step, the upper one first, with a case for each question."""
    met = threshold_cases.found(results.items(), labelled).targets
    return [one for one in met if one.step == step and one.unit == "question" and one.name in EDGES]


def _stored(run: Run, result: RouteResult, grading: Recorded[Grading]) -> Measured | None:
    """Return the grades from stored runs if the evaluator calls a model: a page never calls one."""
    opening.wait_for(run.corpus)
    engine, route = state.engine(), result.route
    try:
        fingerprint = engine.corpus(run.corpus).fingerprint
        key: tuple[object, ...] = ("labelled", run.corpus, fingerprint)
        labelled: LabelledSet = evaluated.remember(key, lambda: surveys.labelled(engine, run.corpus))
    except RouteScopeError as error:
        batch_run.refused(run.corpus, error)
        return None
    calls, asked = sum(one.calls for one in below(result, grading.span)), len(labelled.questions)
    say.caption(
        f"This evaluator calls a model: {calls} calls per question, about {calls * asked} for all {asked}. "
        "This page counts stored runs only; an evaluation measures all questions."
    )
    evaluated.begin("Evaluate this route", "threshold_evaluate", [route])
    rows = state.store().sessions(corpus=run.corpus, limit=1)
    newest, by = f"{rows[0].id} {account.key()}" if rows else "", grading.output.evaluator
    key = ("stored runs", str(engine.settings.home), run.corpus, run.fingerprint, route, by, newest, run.id)
    results = evaluated.remember(key, lambda: _runs(run, route, by, labelled))
    return labelled, results


def _runs(run: Run, route: str, evaluator: str, labelled: LabelledSet) -> dict[str, RouteResult]:
    """Return each labelled question's newest stored result on this corpus state that `evaluator` graded."""
    engine, ids = state.engine(), {one.query: one.id for one in labelled.questions}
    found: dict[str, RouteResult] = {}
    for row in state.store().sessions(corpus=run.corpus, limit=STORED_RUNS):
        if route in row.routes and (one := engine.run(row.id)).fingerprint == run.fingerprint:
            for result in one.results:
                by = {step.output.evaluator for step in gradings(result)}
                if result.route == route and evaluator in by and one.query in ids:
                    found.setdefault(ids[one.query], result)
    return found


def _show(targets: Sequence[Target], labelled: LabelledSet, stored: Edges, tried: Edges) -> None:
    of = {one.id: one.split for one in labelled.questions}
    splits = sorted({split for case in targets[0].cases if (split := of[case.question])})
    usual = "dev" if "dev" in splits else "all"
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        options = ["all", *splits]
        split = choice("split", SPLIT, "Questions", options, usual=usual, segmented=True, always=True)
        edge = choice("edge", EDGE, "Curve against the threshold", list(EDGES), segmented=True)
    if split != "dev":
        st.warning(OVERFIT)
    rows = []
    for target in targets:
        cases = [case for case in target.cases if split in ("all", of[case.question])]
        marks = {
            name: ends[EDGES.index(target.name) - 1] for name, ends in (("stored", stored), ("tried", tried))
        }
        if tried == stored:
            del marks["tried"]
        rows += [_row(target, name, calibrate.worth(cases, target.acts, at)) for name, at in marks.items()]
        if target.name == edge:
            about = calibrate.about(target)
            st.markdown(md(about))
            figure = calibration_curves(
                {split: calibrate.curve(cases, target.acts)}, marks, f"threshold “{edge}”"
            )
            plot(figure, f"curves-{edge}", f"Precision and recall against the threshold “{edge}”. {about}")
    tables.table(rows, "tallies", "Decisions with these thresholds", width="content")


def _row(target: Target, name: str, one: Worth) -> dict[str, object]:
    return {
        "Threshold": f"{target.name}, {name}",
        "At": one.threshold,
        "Questions": one.n,
        "Trusted" if target.acts == "from" else "Discarded": one.acted,
        "Rightly": one.right,
        "Precision": one.of["precision"].value,
        "Recall": one.of["recall"].value,
    }
