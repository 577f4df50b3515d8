"""What fitted weights are and are worth, in words and rows: for the command line and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.analysis.metrics import title as metric_title
from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights
from core.evaluation.finding import Finding, compared, mean
from core.evaluation.finding import figures as shown
from core.evaluation.tuning.learn import EQUAL, METRIC
from core.evaluation.tuning.pairs import Counts
from core.routes.registry import routes

CALLED = {  # what a weight is for, in words
    "score": "for a score at the list's highest",
    "listed": "for being in the list",
    "1/rank": "for being first",
}


def called(name: str) -> str:
    """What a route or a fusion by hand is called."""
    if name == EQUAL:
        return "the same lists with equal weights"
    known = routes().get(name)
    return known.title if known else name


def labels(found: Counts | Mapping[str, Any]) -> str:
    """What the weights are fitted on, with what the missing labels mean."""
    n = found if isinstance(found, Counts) else Counts(**found)
    missed = n.labelled - n.relevant
    return (
        f"{n.questions:,} questions with {n.labelled:,} relevant passages, {n.relevant:,} of them among the "
        f"{n.passages:,} that the lists found"
        + (f" ({missed:,} no list has, which no weights bring back)" if missed else "")
        + f". {n.unjudged:,} of the found are not judged and count as not relevant: where labels are "
        "missing, the weights learn from mistakes."
    )


def worth(fitted: FittedWeights) -> list[str]:
    """The finding first: what the weights are worth on questions that they were not fitted on."""
    lines = []
    for part, said in (
        ("held out", "On questions held out of all fitting"),
        ("out of fold", "On the questions they were fitted on, each by weights that did not see it"),
    ):
        figures = fitted.made.get(part)
        if figures:
            found = mean("", metric_title(METRIC), figures[METRIC], figures["ci95"], figures["n"])
            lines.append(f"{said}: {shown(found)}.")
    return lines


def rivals(fitted: FittedWeights, part: str, group: str = "against") -> list[Finding]:
    """The comparisons of a part ("out of fold", "held out"): with fusions by hand, or routes "measured"."""
    found = fitted.made.get(part, {}).get(group, {})
    return [_compared("the fusion by fitted weights", called(name), one) for name, one in found.items()]


def left_out(fitted: FittedWeights) -> list[Finding]:
    """What leaving out each list does to the figure out of fold; `before` is the mean without it."""
    return [_compared("Without", LISTS[name], one) for name, one in fitted.made.get("without", {}).items()]


def most(fitted: FittedWeights) -> list[tuple[str, float]]:
    """Each list with what its first passage gets from it, most first: the sum of the list's weights."""
    tops = [(LISTS[name], sum(row)) for name, row in zip(fitted.lists, fitted.weights, strict=True)]
    return sorted(tops, key=lambda one: -one[1])


def weights(fitted: FittedWeights) -> str:
    """The weights in a sentence or three."""
    tops = most(fitted)
    said = ", ".join(f"{name} {value:+.2f}" for name, value in tops)
    text = f"The first passage of a list gets from it: {said}; a passage the list lacks gets 0."
    below = [
        f"{LISTS[name]} {CALLED[feature]}"
        for name, row in zip(fitted.lists, fitted.weights, strict=True)
        for feature, value in zip(FEATURES, row, strict=True)
        if value < 0
    ]
    if below:
        text += (
            f" Below 0: {'; '.join(below)}. That is no fault: lists that agree share one finding, and one "
            "takes back what another gave too much."
        )
    return text


def _compared(subject: str, name: str, one: Mapping[str, Any]) -> Finding:
    return compared(one, subject, name, metric_title(METRIC), one[METRIC])
