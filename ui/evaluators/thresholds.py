"""Decisions that the thresholds on the page would make on the corpus' labelled questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core.analysis.run_view import Recorded, below, gradings
from core.analysis.thresholds import changed, in_words
from core.analysis.what_if.grading import ACTIONS, Edge, Tally, by_best, sweep, tally
from core.domain.errors import RouteScopeError
from core.domain.outputs import Grading
from core.domain.program import COMMAND
from core.domain.types import RouteResult, Run
from core.evaluation.dataset import LabelledSet
from core.evaluation.tuning import batch_run as surveys
from core.evaluation.tuning.labelled_grades import Graded, graded
from core.routes.registry import routes
from ui.app import account, address, opening, state
from ui.app.markup import cut, md, show, tag
from ui.app.plot import plot
from ui.charts.grades import threshold_curves
from ui.charts.waterfall import asks_model
from ui.components import tables
from ui.components.batch_run import batch_ran
from ui.evaluators.grades import Edges

SPLIT, EDGE = "threshold_split", "threshold_edge"
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
        st.caption(md(f"This version has no route {cut(result.route, 60)}, so it cannot be rerun."))
        return
    found = _stored(run, result, step) if asks_model(result, step.span) else _surveyed(run, result, step)
    if found is not None and found.cases:
        _show(found, (grading.low, grading.high), edges)


def _surveyed(run: Run, result: RouteResult, grading: Recorded[Grading]) -> Graded | None:
    """Return every labelled question's grades with the parameters of this run; calls no model."""
    known = batch_ran(run.corpus, result, dict(result.parameters), "grades", models=False)
    if known is None:
        st.caption(
            "Runs every labelled question through this route with the parameters of this run, without a "
            "language "
            "model or the web. The results are not stored."
        )
        return None
    found = graded(known.labelled, _of(known.results, result.route), grading.span.name)
    _count(found, "run now, without a model")
    return found


def _stored(run: Run, result: RouteResult, grading: Recorded[Grading]) -> Graded | None:
    """Return the grades from stored runs if the evaluator calls a model: a page never calls one."""
    opening.wait_for(run.corpus)
    engine = state.engine()
    calls = sum(one.calls for one in below(result, grading.span))
    try:
        labelled = _labelled(run.corpus, engine.corpus(run.corpus).fingerprint)
    except RouteScopeError as error:
        st.caption(md(str(error)))
        return None
    parameters = " ".join(
        f"--parameter {result.route}.{name}={value}" for name, value in result.parameters.items()
    )
    st.caption(
        md(
            f"This evaluator calls a model: {calls} calls per question, about"
            f" {calls * len(labelled.questions)} for all {len(labelled.questions)}."
            " This page counts stored runs only. To measure all questions, run:"
        )
    )
    st.code(
        f"{COMMAND} eval {run.corpus} --routes {result.route} --split dev {parameters}".strip(),
        language=None,
    )
    results = _runs(
        engine.settings.home.as_posix(), run.corpus, run.fingerprint, result.route, _newest(run), run.id
    )
    found = graded(labelled, _same(labelled, results, grading.output.evaluator), grading.span.name)
    _count(found, f"from {len(found.cases)} stored runs of labelled questions")
    return found


@st.cache_resource(max_entries=8, show_spinner="Reading labels")
def _labelled(corpus: str, fingerprint: str) -> LabelledSet:  # noqa: ARG001 - part of the cache key
    return surveys.labelled(state.engine(), corpus)


def _newest(run: Run) -> str:
    store = state.engine().store
    rows = store.sessions(corpus=run.corpus, limit=1) if store is not None else []
    return f"{rows[0].id} {account.key()}" if rows else ""


@st.cache_data(max_entries=20, show_spinner="Reading stored runs")
def _runs(
    home: str,  # noqa: ARG001 - part of the cache key
    corpus: str,
    fingerprint: str,
    route: str,
    newest: str,  # noqa: ARG001 - part of the cache key
    run_id: str,  # noqa: ARG001 - part of the cache key
) -> list[Asked]:
    """Return question, history and the route's result from the newest stored runs on this corpus state."""
    engine = state.engine()
    rows = engine.store.sessions(corpus=corpus, limit=STORED_RUNS) if engine.store is not None else []
    found: list[Asked] = []
    for row in rows:
        if route in row.routes:
            one = engine.run(row.id)
            if one.fingerprint == fingerprint:
                turns = tuple((turn.role, turn.text) for turn in one.query.history)
                found += [(one.query.text, turns, r) for r in one.results if r.route == route]
    return found


def _same(labelled: LabelledSet, results: Sequence[Asked], evaluator: str) -> dict[str, RouteResult]:
    """Return each labelled question's newest result with grades of the same evaluator."""
    by_text = {}
    for text, turns, result in reversed(results):
        if any(one.output.evaluator == evaluator for one in gradings(result)):
            by_text[text, turns] = result
    found = {}
    for question in labelled.questions:
        turns = tuple((turn.role, turn.text) for turn in question.query.history)
        if (question.query.text, turns) in by_text:
            found[question.id] = by_text[question.query.text, turns]
    return found


def _of(results: Mapping[str, Mapping[str, RouteResult]], route: str) -> dict[str, RouteResult]:
    return {question: by[route] for question, by in results.items() if route in by}


def _count(found: Graded, where: str) -> None:
    left = []
    if found.unlabelled:
        left.append(f"{found.unlabelled} without a label of whether the corpus answers them")
    if found.ungraded:
        left.append(f"{found.ungraded} without grades")
    out = f" Excluded: {', '.join(left)}." if left else ""
    st.caption(md(f"{len(found.cases)} questions, {where}.{out}"))


def _show(found: Graded, stored: Edges, tried: Edges) -> None:
    splits = sorted({case.split for case in found.cases if case.split})
    names = ["all", *splits]
    address.take("split", SPLIT, address.one_of(names))
    address.take("edge", EDGE, address.one_of(["high", "low"]))
    if st.session_state.get(SPLIT) not in names:
        st.session_state[SPLIT] = "dev" if "dev" in splits else "all"
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        split = st.segmented_control("Questions", names, key=SPLIT, required=True, persist_state="session")
        edge: Edge = (
            st.segmented_control(
                "Curve against the threshold",
                ["high", "low"],
                default="high",
                key=EDGE,
                required=True,
                persist_state="session",
            )
            or "high"
        )
    address.keep("split", split)
    address.keep("edge", edge if edge != "high" else None)
    if split != "dev":
        st.warning(OVERFIT)
    cases = tuple(case for case in found.cases if split in ("all", case.split))
    now, then = tally(cases, *tried), tally(cases, *stored)
    st.markdown(md(in_words(then, len(cases))))
    if tried != stored:
        st.markdown(md(changed(then, now)))
    rows = [("stored", then), *([("tried", now)] if tried != stored else [])]
    tables.show(_table(rows), hide_index=True, width="content", key="tallies")
    marks = {"stored": stored[1] if edge == "high" else stored[0]}
    if tried != stored:
        marks["tried"] = tried[1] if edge == "high" else tried[0]
    figure = threshold_curves(sweep(cases, edge, *tried), edge, marks)
    alt = f"Decisions, precision, recall and wrong discards against the threshold “{edge}”. "
    plot(figure, f"curves-{edge}", alt + in_words(then, len(cases)))


def _table(rows: Sequence[tuple[str, Tally]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "Thresholds": name,
                "Low": round(one.low, 3),
                "High": round(one.high, 3),
                **{action.capitalize(): one.counts[action] for action in ACTIONS},
                "Precision of “correct”": _share(one.precision),
                "Recall": _share(one.recall),
                "Wrong discards": one.discarded,
            }
            for name, one in rows
        ]
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
