"""Whether a router chose well: against the kinds that a set's authors wrote, and against the best route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.domain.errors import BadInput
from core.evaluation.statistics import interval
from core.steps.classes import CLASSES, QuestionClass

Values = Mapping[str, Mapping[str, float]]  # question id -> route -> value of a metric
CLASS_OF: Mapping[str, QuestionClass] = {  # by the mode of a question
    "no_retrieval": "no_retrieval",
    "exact_identifier": "exact",
    "plain": "plain",
    "vocabulary_mismatch": "conceptual",
    "abstract": "conceptual",
    "multi_hop": "complex",
    "comparison": "complex",
    "ambiguous_followup": "conversational",
    "structured": "structured",
}  # no_answer and outside_knowledge tell what the corpus lacks, not how to search it


@dataclass(frozen=True, slots=True)
class Confusion:
    """`counts[row][column]`: questions of class `labels[row]` that were taken for `labels[column]`.

    `left_out`: questions whose mode stands for no class, or for which no class was chosen.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    left_out: int

    @property
    def asked(self) -> int:
        """The questions counted."""
        return sum(map(sum, self.counts))

    @property
    def accuracy(self) -> float | None:
        """The share of questions taken for what they are; None without any."""
        right = sum(row[at] for at, row in enumerate(self.counts))
        return right / self.asked if self.asked else None

    def recall(self) -> dict[str, float | None]:
        """For each class the share of its questions that were taken for it; None where it has none."""
        return {
            label: row[at] / sum(row) if sum(row) else None
            for at, (label, row) in enumerate(zip(self.labels, self.counts, strict=True))
        }


@dataclass(frozen=True, slots=True)
class Regret:
    """How much of a metric a router gave away: the best route's value minus the router's, per question.

    `mean` with its 95 % bootstrap interval (None below two questions); `best` counts for each route the
    questions on which it was best, shared ones for each of them.
    """

    by_question: Mapping[str, float]
    mean: float
    interval: tuple[float, float] | None
    best: Mapping[str, int]


def confusion(chosen: Mapping[str, str], modes: Mapping[str, str | None]) -> Confusion:
    """The confusion of the classes `chosen`, by question id, with those of the questions' `modes`.

    BadInput for a chosen class that there is not.
    """
    counts = {(truth, taken): 0 for truth in CLASSES for taken in CLASSES}
    left_out = 0
    for question, mode in modes.items():
        truth, taken = CLASS_OF.get(mode or ""), chosen.get(question)
        if truth is None or taken is None:
            left_out += 1
        elif taken not in CLASSES:
            raise BadInput(f"{question}: {taken!r} is no class; there are: {', '.join(CLASSES)}")
        else:
            counts[truth, taken] += 1
    rows = tuple(tuple(counts[truth, taken] for taken in CLASSES) for truth in CLASSES)
    return Confusion(CLASSES, rows, left_out)


def regret(values: Mapping[str, Mapping[str, float]], router: str) -> Regret:
    """The regret of `router` from a metric's `values`, question id -> route -> value.

    The router is one of the routes to choose from, so no regret is below 0. A question that the router has no
    value for is left out; BadInput where it has none at all.
    """
    known = {question: routes for question, routes in values.items() if router in routes}
    if not known:
        raise BadInput(f"route {router!r} has no value on any of {len(values)} questions")
    lost = {question: max(routes.values()) - routes[router] for question, routes in known.items()}
    best: dict[str, int] = {}
    for routes in known.values():
        top = max(routes.values())
        for name, value in routes.items():
            best[name] = best.get(name, 0) + (value == top)
    return Regret(lost, sum(lost.values()) / len(lost), interval(list(lost.values())), best)


def block(
    chosen: Mapping[str, str], modes: Mapping[str, str | None], values: Values, router: str, metric: str
) -> dict[str, Any]:
    """What an evaluation tells of a router: its confusion, and its regret in `metric` against the routes run.

    `values`: question id -> route -> value of the questions with labels; without any there is no regret.
    """
    found = confusion(chosen, modes)
    told: dict[str, Any] = {
        "classes": list(found.labels),
        "confusion": [list(row) for row in found.counts],
        "accuracy": found.accuracy,
        "asked": found.asked,
        "left_out": found.left_out,
    }
    if any(router in routes for routes in values.values()):
        lost = regret(values, router)
        told["regret"] = {
            "metric": metric, "mean": lost.mean, "ci95": lost.interval and list(lost.interval),
            "n": len(lost.by_question), "best": dict(lost.best),
        }  # fmt: skip
    return told


def matrix(found: Confusion) -> str:
    """The confusion as lines of text: a row for each class as it is, a column for each it was taken for."""
    width = max(map(len, found.labels))
    lines = [" " * width + "".join(f"  {label[:9]:>9}" for label in found.labels)]
    for label, row in zip(found.labels, found.counts, strict=True):
        lines.append(f"{label:<{width}}" + "".join(f"  {count:>9}" for count in row))
    told = "none" if found.accuracy is None else f"{found.accuracy:.3f}"
    lines.append(f"accuracy {told} of {found.asked} questions, {found.left_out} left out")
    return "\n".join(lines)
