"""The reliability of a run's evaluators, as measured on labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from core.analysis.run_view import gradings
from core.backends import calibrations, evaluators
from core.backends.calibrations import DECISIONS, DecisionCalibration
from core.domain.errors import RouteScopeError
from core.domain.outputs import Decision
from core.domain.types import Run
from core.evaluation.calibration import Reliability, read_reliability
from core.steps.grade import CHECKED
from ui.app import state
from ui.app.markup import md
from ui.charts import describe_reliability, reliability_curve


def draw(run: Run) -> None:
    """Draw a reliability curve for each evaluator that graded here and was checked against labels."""
    curves: dict[str, Reliability] = {}
    told: list[str] = []
    for name in _names(run):
        try:
            made = evaluators.read(name, state.engine().settings.home, run.corpus).made
        except RouteScopeError as error:
            st.caption(md(str(error)))
            continue
        curve = read_reliability(made.get("passages graded"))
        if curve is not None:
            curves[name] = curve
            told.append(_made(name, made))
    _show("How reliable these grades are", curves, told, "reliability")


def judgements(run: Run) -> None:
    """Draw a reliability curve for each calibrated judgement that a route used."""
    curves: dict[str, Reliability] = {}
    told: list[str] = []
    for calibration in _calibrations(run):
        curve = read_reliability(calibration.reliability)
        if curve is not None:
            curves[calibration.decision] = curve
            told.append(_carries(calibration))
    _show("How reliable the model's judgements are", curves, told, "judgements")


def _show(label: str, curves: Mapping[str, Reliability], told: list[str], key: str) -> None:
    if not curves:
        return
    with st.expander(label):
        st.caption(md(" ".join(told)))
        figure = reliability_curve(curves)
        alt = describe_reliability(curves)
        st.plotly_chart(figure, theme=None, width="content", key=key, alt=alt)
        st.caption(md(alt))


def _calibrations(run: Run) -> list[DecisionCalibration]:
    """Return the calibrations that the run's routes looked up for their model."""
    looked_up = {
        (str(span.output.details["about"]), str(span.output.details["model"]))
        for result in run.results
        for span in result.spans
        if span.name == CHECKED and isinstance(span.output, Decision)
    }
    found = []
    for about in DECISIONS:
        for model in sorted(model for name, model in looked_up if name == about):
            try:
                calibration = calibrations.read(about, model, state.engine().settings.home)
            except RouteScopeError as error:
                st.caption(md(str(error)))
                continue
            if calibration is not None:
                found.append(calibration)
    return found


def _carries(calibration: DecisionCalibration) -> str:
    """Describe a judgement's accuracy, and how thresholds of the other sets do on each set."""
    apart = [
        f"{held.name} {held.balanced_accuracy:.2f}"
        for held in calibration.held_out
        if held.balanced_accuracy is not None
    ]
    text = f"{calibration.decision}: {calibration.in_words()}; threshold {calibration.threshold:.2f}"
    if apart:
        text += f"; balanced accuracy by the threshold of the other sets: {', '.join(apart)}"
    return f"{text}."


def _names(run: Run) -> list[evaluators.Which]:
    named = {grading.output.evaluator for result in run.results for grading in gradings(result)}
    return [name for name in get_args(evaluators.Which) if name in named]


def _made(name: str, made: Mapping[str, Any]) -> str:
    sets = ", ".join(map(str, made.get("sets") or ["unnamed sets"]))
    return f"{name}: checked on {made.get('questions')} questions of {sets}, {made.get('figures from')}."
