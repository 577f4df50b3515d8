"""A threshold that steps compare scores with, and the cases that show its effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from core.domain.types import Span
from core.evaluation.calibration import Acts

Unit = Literal["question", "passage", "strip"]
UNLABELLED = "no labels on whether the corpus answers them"
NO_GRADE = "no grade is available"
NO_GOLD = "no gold answer to judge by"
NOT_TOLD = "the step does not record which passages it read"
BEST = "the best piece of each passage passes whatever the floor"
NO_QUOTE = "no quote is labelled"


@dataclass(frozen=True, slots=True)
class Judged:
    """One score of one question, and whether what the threshold asks for is there."""

    question: str
    score: float
    positive: bool


@dataclass(frozen=True, slots=True)
class Target:
    """A threshold of a step of a route.

    `name` is the input of the step that it is, as parameters tune it; `unit` is what is scored. The step acts
    on a score `from` the threshold on or `below` it: `act` says what it does then, `positive` what makes that
    right for a score from the threshold on. `probability`: the scores claim to be one. `by_settings`: all
    routes alike have it from the setting `answer_evidence`. `stored` counts the thresholds that the results
    were made with; `ran` and `span` are the parameters and the step of one of them, to find the parameter.
    """

    route: str
    step: str
    name: str
    unit: Unit
    acts: Acts
    act: str
    positive: str
    probability: bool
    by_settings: bool = False
    cases: tuple[Judged, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> how many of the unit
    stored: Mapping[float, int] = field(default_factory=dict)
    ran: Mapping[str, Any] = field(default_factory=dict)
    span: Span | None = None

    @property
    def key(self) -> str:
        """Return the key that identifies it among the thresholds of its route."""
        return f"{self.step}:{self.name}:{self.unit}"

    @property
    def shipped(self) -> float:
        """The threshold that most of the results were made with."""
        return max(self.stored, key=lambda one: (self.stored[one], -one))


@dataclass(frozen=True, slots=True)
class Told:
    """The evidence of one step of one question on one threshold: its target without cases, and the cases."""

    target: Target
    threshold: float
    judged: tuple[tuple[float, bool], ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """All thresholds met, and the steps that hold a score against one but cannot be judged: (route, step) ->
    why.
    """

    targets: tuple[Target, ...]
    unjudged: Mapping[tuple[str, str], str] = field(default_factory=dict)


class Growing:
    """A target while its cases are gathered."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cases: list[Judged] = []
        self.left_out: Counter[str] = Counter()
        self.stored: Counter[float] = Counter()

    def add(self, question: str, told: Told) -> None:
        """Add the scores of one question."""
        self.stored[told.threshold] += 1
        self.left_out.update(told.left_out)
        self.cases += [Judged(question, score, positive) for score, positive in told.judged]

    def done(self) -> Target:
        """Return the target with all its cases."""
        return replace(
            self.target, cases=tuple(self.cases), left_out=dict(self.left_out), stored=dict(self.stored)
        )
