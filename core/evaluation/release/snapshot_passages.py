"""The relevant passages in a snapshot: where the shipped route ranked them, and what lost the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from core.evaluation.diff.questions import NOT_RECORDED, Asked, EvaluationSide, PassageLoss

if TYPE_CHECKING:
    from core.evaluation.experiment_store import Evaluation


class Ranked(TypedDict):
    """A relevant passage: its rank, None if it is not ranked, and the reason it is not among the first k."""

    grade: int
    rank: int | None
    loss: PassageLoss | None


class AskedOf(TypedDict):
    """The route's status for a question, and its relevant passages."""

    status: str
    relevant: Mapping[str, Ranked]


class Passages(TypedDict):
    """The shipped route's ranks of the relevant passages of each question; `depth` is k."""

    depth: int
    relevant_from: int
    questions: Mapping[str, AskedOf]


def passages_of(evaluation: Evaluation, route: str, depth: int) -> Passages:
    """Return a route's passages for a snapshot."""
    side = EvaluationSide(evaluation, route)

    def ranked(id: str, passage: str, asked: Asked) -> Ranked:
        rank = asked.ranks.get(passage)
        loss = None if rank is not None and rank <= depth else side.loss(id, passage, depth)
        return {"grade": asked.labels[passage], "rank": rank, "loss": loss}

    return {
        "depth": depth,
        "relevant_from": side.relevant_from,
        "questions": {
            id: {
                "status": asked.status,
                "relevant": {
                    passage: ranked(id, passage, asked)
                    for passage, grade in asked.labels.items()
                    if grade >= side.relevant_from
                },
            }
            for id, asked in side.questions.items()
        },
    }


class SnapshotSide:
    """The shipped route of a snapshot (core.evaluation.diff.questions.Side). `asked`: id -> text and mode."""

    def __init__(
        self, name: str, route: str, asked: Mapping[str, tuple[str, str]], passages: Passages
    ) -> None:
        self.name, self.route, self.depth = name, route, passages["depth"]
        self.relevant_from = passages["relevant_from"]
        self._asked = passages["questions"]
        self.questions = {
            id: Asked(
                *asked[id],
                {passage: ranked["grade"] for passage, ranked in one["relevant"].items()},
                {p: rank for p, ranked in one["relevant"].items() if (rank := ranked["rank"]) is not None},
                one["status"],
            )
            for id, one in self._asked.items()
        }

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """See Side; the snapshot has it for the depth it was written with."""
        found = self._asked[question]["relevant"][passage]["loss"]
        if found is None or depth != self.depth:
            return PassageLoss(NOT_RECORDED, None, None, "The snapshot does not record the step.")
        return found
