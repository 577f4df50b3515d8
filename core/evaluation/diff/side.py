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

    # the grade from which a passage is relevant
    relevant_from: int

    @property
    def questions(self) -> Mapping[str, Asked]: ...

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
        found = {}
        for id, asked in self.evaluation.questions.items():
            outcome = self.evaluation.outcomes.get(id, {}).get(self.route)
            if outcome is not None:
                labels = self.evaluation.labelled.qrels.get(id, {})
                hits = outcome.hits if outcome.status == "ok" else ()
                ranks = {passage: at for at, (passage, _) in enumerate(hits, 1) if passage in labels}
                found[id] = Asked(asked.query.text, asked.mode or "", labels, ranks, outcome.status)
        return found

    def loss(self, question: str, passage: str, depth: int) -> PassageLoss:
        """See Side; where no trace was kept or it cannot be read, the kind is "not recorded"."""
        try:
            trace = self._trace(question)
        except RouteScopeError as error:
            told = str(error).rstrip(".")
            return PassageLoss(NOT_RECORDED, None, None, f"The step is not known: {told}.")
        fate = trace.fate(passage, depth)
        step = fate.step.name if fate.step is not None else None
        if step is None and fate.kind == "never retrieved":
            step = ", ".join(dict.fromkeys(span.name for span in trace.searches)) or None
        return PassageLoss(fate.kind, step, fate.was, fate.words)

    def _read(self, question: str) -> PassageTrace:
        """Return the route's trace of a question. Raises RouteScopeError with the reason it is missing."""
        for one in self.evaluation.run(question).results:
            if one.route == self.route:
                return PassageTrace(one)
        raise BadInput(f"the saved run of question {question!r} has no route {self.route}")
