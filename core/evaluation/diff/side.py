"""One route of one evaluation as a diff needs it: where it ranked the judged passages, and what lost them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

from core.analysis.passage_trace import PassageTrace
from core.domain.errors import BadInput, RouteScopeError

if TYPE_CHECKING:
    from core.evaluation.experiment_store import Evaluation

NOT_RECORDED = "not recorded"
TRACES_KEPT = 4  # questions whose trace is held: the passages of one question are asked for in a row


@dataclass(frozen=True, slots=True)
class PassageLoss:
    """Why a passage was not among the first k: `kind` as in core.analysis.passage_trace, the name of the
    `step` that lost it (None where the trace names none), its rank before that step, and a sentence.
    """

    kind: str
    step: str | None
    was: int | None
    words: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a route was asked it. `labels`: passage -> grade. `ranks`: the labelled passages that the
    route ranked, from 1. `status`: how the route ended.
    """

    text: str
    mode: str
    labels: Mapping[str, int]
    ranks: Mapping[str, int]
    status: str


class Side(Protocol):
    """A route of an evaluation, or of a release snapshot."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def route(self) -> str:
        """Return the route."""

    @property
    def relevant_from(self) -> int:
        """Return the grade from which a passage is relevant."""

    @property
    def questions(self) -> Mapping[str, Asked]:
        """Return the questions the route was asked, by id."""

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """Return the recorded reason a passage is not among the first `depth`."""


class EvaluationSide:
    """A route of a saved evaluation; losses are read from the traces it keeps."""

    def __init__(self, evaluation: Evaluation, route: str) -> None:
        if route not in evaluation.routes:
            raise BadInput(
                f"evaluation {evaluation.name} did not measure route {route!r}; it has: "
                f"{', '.join(evaluation.routes)}"
            )
        self.evaluation = evaluation
        self.name, self.route = evaluation.name, route
        self.relevant_from = evaluation.labelled.relevant_from
        self._trace = lru_cache(maxsize=TRACES_KEPT)(self._read)

    @cached_property
    def questions(self) -> Mapping[str, Asked]:
        """See Side."""
        evaluation, route = self.evaluation, self.route
        return {
            id: Asked(
                asked.query.text,
                asked.mode or "",
                labels := evaluation.labelled.qrels.get(id, {}),
                {
                    passage: rank
                    for rank, (passage, _) in enumerate(outcome.hits, 1)
                    if passage in labels and outcome.status == "ok"
                },
                outcome.status,
            )
            for id, asked in evaluation.questions.items()
            if (outcome := evaluation.outcomes.get(id, {}).get(route)) is not None
        }

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """See Side; where no trace was kept or it cannot be read, the kind is "not recorded"."""
        trace = self._trace(question)
        if isinstance(trace, str):
            return PassageLoss(NOT_RECORDED, None, None, f"The step is not known: {trace}.")
        fate = trace.fate(passage, depth)
        step = fate.step.name if fate.step is not None else None
        if step is None and fate.kind == "never retrieved":
            step = ", ".join(dict.fromkeys(span.name for span in trace.searches)) or None
        return PassageLoss(fate.kind, step, fate.was, fate.words)

    def _read(self, question: str) -> PassageTrace | str:
        """Return the route's trace of a question, or the reason it is missing."""
        try:
            run = self.evaluation.run(question)
        except RouteScopeError as error:
            return str(error).rstrip(".")
        result = next((one for one in run.results if one.route == self.route), None)
        if result is None:
            return f"the saved run of question {question!r} has no route {self.route}"
        return PassageTrace(result)
