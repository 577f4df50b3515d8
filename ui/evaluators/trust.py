"""The reliability of a run's evaluators, as measured on labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import streamlit as st

from core.analysis.run_view import gradings
from core.backends import calibrations, evaluators
from core.backends.calibrations import DECISIONS, DecisionCalibration
from core.domain.outputs import Decision
from core.domain.types import Run
from core.evaluation.calibration import Reliability, read_reliability
from core.steps.grade import CHECKED
from ui.app import say, state
from ui.charts.grades import describe_reliability, reliability_curve


def draw(run: Run) -> None:
    """Draw a reliability curve for each evaluator that graded here and was checked against labels."""
    found: dict[str, tuple[Reliability, str]] = {}
    named = {grading.output.evaluator for result in run.results for grading in gradings(result)}
    for name in (one for one in get_args(evaluators.Which) if one in named):
        with say.errors():
            made = evaluators.read(name, state.engine().settings.home, run.corpus).made
            if (curve := read_reliability(made.get("passages graded"))) is not None:
                sets = ", ".join(map(str, made.get("sets") or ["unnamed sets"]))
                checked = f"checked on {made.get('questions')} questions of {sets}"
                found[name] = curve, f"{name}: {checked}, {made.get('figures from')}."
    _show("How reliable these grades are", found, "reliability")


def judgements(run: Run) -> None:
    """Draw a reliability curve for each calibrated judgement that the run's routes looked up."""
    found: dict[str, tuple[Reliability, str]] = {}
    looked_up = {
        (str(span.output.details["about"]), str(span.output.details["model"]))
        for result in run.results
        for span in result.spans
        if span.name == CHECKED and isinstance(span.output, Decision)
    }
    for decision in DECISIONS:
        for model in sorted(model for about, model in looked_up if about == decision):
            with say.errors():
                one = calibrations.read(decision, model, state.engine().settings.home)
                if one is not None and (curve := read_reliability(one.reliability)) is not None:
                    found[one.decision] = curve, _carries(one)
    _show("How reliable the model's judgements are", found, "judgements")


def _show(label: str, found: Mapping[str, tuple[Reliability, str]], key: str) -> None:
    if not found:
        return
    with st.expander(label):
        say.caption(" ".join(told for _, told in found.values()))
        curves = {name: curve for name, (curve, _) in found.items()}
        alt = describe_reliability(curves)
        st.plotly_chart(reliability_curve(curves), theme=None, width="content", key=key, alt=alt)
        say.caption(alt)


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
