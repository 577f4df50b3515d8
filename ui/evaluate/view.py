"""Parts that all views of an evaluation share: its figures against a baseline, and the metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.analysis.metrics import ANSWERS
from core.evaluation import answer_figures, experiment_store, leaderboard
from core.evaluation.comparison import ByRoute
from core.evaluation.experiment_store import Evaluation
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import of_figures
from ui.app.markup import tag


@dataclass(frozen=True)
class Look:
    """An evaluation with its figures against `baseline` and the chosen `metric`."""

    evaluation: Evaluation
    figures: Mapping[str, Any]
    metric: str
    baseline: str

    @property
    def key(self) -> tuple[str, tuple[float, ...]]:
        """Return a cache key that changes when the evaluation does."""
        return str(self.evaluation.folder), experiment_store.stamp(self.evaluation.folder)


def figures(evaluation: Evaluation, baseline: str) -> Mapping[str, Any]:
    """Return the figures against a baseline, computed once."""
    folder = evaluation.folder
    return _figures(str(folder), experiment_store.stamp(folder), baseline, evaluation)


@st.cache_resource(max_entries=16, show_spinner="Comparing all routes with the baseline")
def _figures(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: tuple[float, ...],  # noqa: ARG001 - part of the cache key
    baseline: str,
    _evaluation: Evaluation,
) -> Mapping[str, Any]:
    return leaderboard.against(_evaluation, baseline)


def sentences(texts: Sequence[str]) -> Markup:
    """Return the findings: the first sentence stands out, with the others as lines below it."""
    first, *others = texts
    lines = tag("ul", *(tag("li", one, dir="auto") for one in others)) if others else ""
    return tag("div", tag("p", tag("b", first), dir="auto"), lines, css="rs rs-evaluate-words")


def values(look: Look) -> ByRoute:
    """Return values by route, question and metric, from rankings or, for metrics of answers, from answers."""
    evaluation = look.evaluation
    if look.metric not in ANSWERS:
        return evaluation.values
    return _answers(*look.key, evaluation)


@st.cache_resource(max_entries=4, show_spinner="Measuring the answers")
def _answers(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: tuple[float, ...],  # noqa: ARG001 - part of the cache key
    _evaluation: Evaluation,
) -> ByRoute:
    return answer_figures.measured(_evaluation.labelled, _evaluation.outcomes, _evaluation.routes)


def decided(look: Look) -> Decision:
    """Return the decision in the metric looked at, without limits on time and cost."""
    return _decided(*look.key, look.metric, look.baseline, look)


@st.cache_resource(max_entries=16, show_spinner="Comparing all routes with each other")
def _decided(
    folder: str,  # noqa: ARG001 - part of the cache key
    stamp: tuple[float, ...],  # noqa: ARG001 - part of the cache key
    metric: str,
    baseline: str,  # noqa: ARG001 - part of the cache key
    _look: Look,
) -> Decision:
    return decide(
        of_figures(_look.figures, _look.evaluation.name, evaluation=_look.evaluation), Criteria(metric)
    )
