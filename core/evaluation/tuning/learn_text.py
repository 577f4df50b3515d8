"""Fitted weights and their figures, in words and rows: for the command line and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.analysis.metrics import titled
from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights
from core.evaluation.finding import Finding, compared, mean
from core.evaluation.finding import figures as shown
from core.evaluation.templating import say
from core.evaluation.tuning.learn import EQUAL, METRIC
from core.evaluation.tuning.pairs import Counts
from core.routes.registry import routes

CALLED = {  # what a weight is for, in words
    "score": "for a score at the list's highest",
    "listed": "for being in the list",
    "1/rank": "for being first",
}


def called(name: str) -> str:
    """Return the name of a route or a fusion by hand."""
    if name == EQUAL:
        return "the same lists with equal weights"
    known = routes().get(name)
    return known.title if known else name


def labels(found: Counts | Mapping[str, Any]) -> str:
    """Return the labels that the weights are fitted on, and the effect of missing ones."""
    n = found if isinstance(found, Counts) else Counts(**found)
    return say("weights.labels", n)


def worth(fitted: FittedWeights) -> list[str]:
    """Return the finding first: the figures of the weights on questions that they were not fitted on."""
    lines = []
    for part, where in (
        ("held out", "On held-out questions"),
        ("out of fold", "By cross-validation on the questions they were fitted on"),
    ):
        figures = fitted.made.get(part)
        if figures:
            found = mean("", titled(METRIC), figures[METRIC], figures["ci95"], figures["n"])
            lines.append(f"{where}: {shown(found)}.")
    return lines


def rivals(fitted: FittedWeights, part: str, group: str = "against") -> list[Finding]:
    """Return the comparisons of a part ("out of fold", "held out"): with fusions by hand, or routes
    "measured".
    """
    found = fitted.made.get(part, {}).get(group, {})
    return [_compared("the fusion by fitted weights", called(name), one) for name, one in found.items()]


def left_out(fitted: FittedWeights) -> list[Finding]:
    """Return the effect of leaving out each list on the figure out of fold; `before` is the mean without
    it.
    """
    return [_compared("Without", LISTS[name], one) for name, one in fitted.made.get("without", {}).items()]


def most(fitted: FittedWeights) -> list[tuple[str, float]]:
    """Each list with the score it adds to its first passage, most first: the sum of the list's weights."""
    tops = [(LISTS[name], sum(row)) for name, row in zip(fitted.lists, fitted.weights, strict=True)]
    return sorted(tops, key=lambda one: -one[1])


def weights(fitted: FittedWeights) -> str:
    """Return the weights in a sentence or three."""
    below = [
        f"{LISTS[name]} {CALLED[feature]}"
        for name, row in zip(fitted.lists, fitted.weights, strict=True)
        for feature, value in zip(FEATURES, row, strict=True)
        if value < 0
    ]
    return say("weights.weights", most(fitted), below)


def _compared(subject: str, name: str, one: Mapping[str, Any]) -> Finding:
    return compared(one, subject, name, titled(METRIC), one[METRIC])
