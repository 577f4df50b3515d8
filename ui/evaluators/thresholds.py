"""Decisions that the thresholds on the page would make on the corpus' labelled questions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.analysis.run_view import Recorded, below, gradings
from core.analysis.what_if.grading import (
    ACTIONS,
    Edge,
    Tally,
    by_best,
    sweep,
    tally,
    tally_change,
    tally_in_words,
)
from core.domain.errors import RouteScopeError
from core.domain.outputs import Grading
from core.domain.types import RouteResult, Run
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.tuning import batch_run as surveys
from core.evaluation.tuning.labelled_grades import Graded, graded
from core.routes.registry import routes
from ui.app import account, evaluated, opening, say, state
from ui.app.choice import choice
from ui.app.markup import cut, md, show, tag
from ui.app.plot import plot
from ui.charts.grades import threshold_curves
from ui.charts.waterfall import asks_model
from ui.components import tables
from ui.components.batch_run import batch_ran
from ui.evaluators.grades import Edges

SPLIT, EDGE = "threshold_split", "threshold_edge"
EDGES: tuple[Edge, ...] = ("high", "low")
STORED_RUNS = 300  # of a corpus, the newest, that are looked through for labelled questions
Asked = tuple[str, tuple[tuple[str, str], ...], RouteResult]  # question, (role, text) before it, result
OVERFIT = (
    "Choose thresholds on dev questions. A threshold looks better than it is when you measure it on the "
    "questions you chose it on, above all on test questions."
)


def draw(run: Run, result: RouteResult, step: Recorded[Grading], edges: Edges) -> None:
    """Draw what thresholds would decide on the corpus' labelled questions, or how to get that."""
    show(tag("div", tag("h3", "On the labelled questions", css="rs-part"), css="rs"))
    grading = step.output
    if not by_best(grading):
        st.caption("Only available for steps that decide by their best grade and two thresholds.")
        return
    if result.route not in routes():
        say.caption(f"This version has no route {cut(result.route, 60)}, so it cannot be rerun.")
        return
    found = _stored(run, result, step) if asks_model(result, step.span) else _surveyed(run, result, step)
    if found is None:
        return
    left = {"a label of whether the corpus answers them": found.unlabelled, "grades": found.ungraded}
    out = ", ".join(f"{count} without {what}" for what, count in left.items() if count)
    how = "run now, without a model"
    if asks_model(result, step.span):
        how = f"from {len(found.cases)} stored runs of labelled questions"
    say.caption(f"{len(found.cases)} questions, {how}.{f' Excluded: {out}.' if out else ''}")
    if found.cases:
        _show(found, (grading.low, grading.high), edges)


def _surveyed(run: Run, result: RouteResult, grading: Recorded[Grading]) -> Graded | None:
    """Return every labelled question's grades with the parameters of this run; calls no model."""
    known = batch_ran(run.corpus, result, dict(result.parameters), "grades", models=False)
    if known is None:
        st.caption("Runs every labelled question through this route, without a language model or the web.")
        return None
    results = {question: by[result.route] for question, by in known.results.items() if result.route in by}
    return graded(known.labelled, results, grading.span.name)


def _stored(run: Run, result: RouteResult, grading: Recorded[Grading]) -> Graded | None:
    """Return the grades from stored runs if the evaluator calls a model: a page never calls one."""
    opening.wait_for(run.corpus)
    engine = state.engine()
    calls = sum(one.calls for one in below(result, grading.span))
    try:
        fingerprint = engine.corpus(run.corpus).fingerprint
        labelled: LabelledSet = evaluated.remember(
            ("labelled", run.corpus, fingerprint), lambda: surveys.labelled(engine, run.corpus)
        )
    except RouteScopeError as error:
        say.caption(error)
        return None
    say.caption(
        f"This evaluator calls a model: {calls} calls per question, about"
        f" {calls * len(labelled.questions)} for all {len(labelled.questions)}."
        " This page counts stored runs only; an evaluation measures all questions."
    )
    evaluated.begin("Evaluate this route", "threshold_evaluate", [result.route])
    rows = engine.store.sessions(corpus=run.corpus, limit=1) if engine.store is not None else []
    newest = f"{rows[0].id} {account.key()}" if rows else ""
    home, route = str(engine.settings.home), result.route
    key = ("stored runs", home, run.corpus, run.fingerprint, route, newest, run.id)
    results: list[Asked] = evaluated.remember(key, lambda: _runs(run, route))
    return graded(labelled, _same(labelled, results, grading.output.evaluator), grading.span.name)


def _runs(run: Run, route: str) -> list[Asked]:
    """Return question, history and the route's result from the newest stored runs on this corpus state."""
    engine = state.engine()
    rows = engine.store.sessions(corpus=run.corpus, limit=STORED_RUNS) if engine.store is not None else []
    found: list[Asked] = []
    for row in rows:
        if route in row.routes:
            one = engine.run(row.id)
            if one.fingerprint == run.fingerprint:
                turns = tuple((turn.role, turn.text) for turn in one.query.history)
                found += [(one.query.text, turns, r) for r in one.results if r.route == route]
    return found


def _same(labelled: LabelledSet, results: Sequence[Asked], evaluator: str) -> dict[str, RouteResult]:
    """Return each labelled question's newest result with grades of the same evaluator."""

    def key(one: Question) -> tuple[str, tuple[tuple[str, str], ...]]:
        return one.query.text, tuple((turn.role, turn.text) for turn in one.query.history)

    by_text = {
        (text, turns): result
        for text, turns, result in reversed(results)
        if any(one.output.evaluator == evaluator for one in gradings(result))
    }
    return {one.id: by_text[key(one)] for one in labelled.questions if key(one) in by_text}


def _show(found: Graded, stored: Edges, tried: Edges) -> None:
    splits = sorted({case.split for case in found.cases if case.split})
    usual = "dev" if "dev" in splits else "all"
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        options = ["all", *splits]
        split = choice("split", SPLIT, "Questions", options, usual=usual, segmented=True, always=True)
        edge = choice("edge", EDGE, "Curve against the threshold", EDGES, segmented=True)
    if split != "dev":
        st.warning(OVERFIT)
    cases = tuple(case for case in found.cases if split in ("all", case.split))
    now, then = tally(cases, *tried), tally(cases, *stored)
    st.markdown(md(tally_in_words(then, len(cases))))
    at = EDGES.index(edge) - 1
    rows, marks = [_row("stored", then)], {"stored": stored[at]}
    if tried != stored:
        st.markdown(md(tally_change(then, now)))
        rows.append(_row("tried", now))
        marks["tried"] = tried[at]
    figure = threshold_curves(sweep(cases, edge, *tried), edge, marks)
    alt = f"Decisions, precision, recall and wrong discards against the threshold “{edge}”. "
    plot(figure, f"curves-{edge}", alt + tally_in_words(then, len(cases)))
    tables.table(rows, "tallies", "Decisions with these thresholds", width="content")


def _row(name: str, one: Tally) -> dict[str, object]:
    return {
        "Thresholds": name,
        "Low": one.low,
        "High": one.high,
        **{action.capitalize(): one.counts[action] for action in ACTIONS},
        "Precision of “correct”": one.precision,
        "Recall": one.recall,
        "Wrong discards": one.discarded,
    }
