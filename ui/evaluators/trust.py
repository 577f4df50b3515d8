"""How far the grades of a run's evaluators can be trusted: their reliability, as measured on labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from core.analysis.run_view import gradings
from core.backends import evaluators
from core.domain.errors import RouteScopeError
from core.domain.types import Run
from core.evaluation.reliability import Reliability, read
from ui.app import state
from ui.app.markup import md
from ui.charts import reliability_curve, reliability_in_words


def draw(run: Run, *, dark: bool) -> None:
    """A curve for each evaluator that graded here and was checked against labels; nothing where none was."""
    curves: dict[str, Reliability] = {}
    told: list[str] = []
    for name in _names(run):
        try:
            made = evaluators.read(name, state.engine().settings.home, run.corpus).made
        except RouteScopeError as error:
            st.caption(md(str(error)))
            continue
        curve = read(made.get("passages graded"))
        if curve is not None:
            curves[name] = curve
            told.append(_made(name, made))
    if not curves:
        return
    with st.expander("How reliable these grades are"):
        st.caption(md(" ".join(told)))
        figure = reliability_curve(curves, dark=dark)
        alt = reliability_in_words(curves)
        st.plotly_chart(figure, theme=None, width="content", key="reliability", alt=alt)
        st.caption(md(alt))


def _names(run: Run) -> list[evaluators.Which]:
    named = {grading.output.evaluator for result in run.results for grading in gradings(result)}
    return [name for name in get_args(evaluators.Which) if name in named]


def _made(name: str, made: Mapping[str, Any]) -> str:
    sets = ", ".join(map(str, made.get("sets") or ["unnamed sets"]))
    return f"{name}: checked on {made.get('questions')} questions of {sets}, {made.get('figures from')}."
