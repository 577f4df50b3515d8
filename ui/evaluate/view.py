"""Parts that all views of an evaluation share: its figures against a baseline, and the metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from core.analysis.metrics import ANSWERS
from core.evaluation import leaderboard, scoring
from core.evaluation.comparison import ByRoute
from core.evaluation.experiment_store import Evaluation
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import Decision, decide
from core.evaluation.release.measured import of_figures
from ui.app.evaluated import once
from ui.app.markup import fragment


@dataclass(frozen=True)
class Look:
    """An evaluation with its figures against `baseline` and the chosen `metric`."""

    evaluation: Evaluation
    figures: Mapping[str, Any]
    metric: str
    baseline: str


def figures(evaluation: Evaluation, baseline: str) -> Mapping[str, Any]:
    """Return the figures against a baseline, computed once."""
    return once(evaluation, "figures", baseline, compute=lambda: leaderboard.against(evaluation, baseline))


def sentences(texts: Sequence[str]) -> Markup:
    """Return the findings: the first sentence stands out, with the others as lines below it."""
    return fragment("evaluate.sentences", texts[0], texts[1:])


def values(look: Look) -> ByRoute:
    """Return values by route, question and metric, from rankings or, for metrics of answers, from answers."""
    one = look.evaluation
    if look.metric not in ANSWERS:
        return one.values
    return once(one, "answers", compute=lambda: scoring.measured(one.labelled, one.outcomes, one.routes))


def decided(look: Look) -> Decision:
    """Return the decision in the metric looked at, without limits on time and cost."""
    one = look.evaluation
    found = of_figures(look.figures, one.name, evaluation=one)
    key = "decision", look.metric, look.baseline
    return once(one, *key, compute=lambda: decide(found, Criteria(look.metric)))
