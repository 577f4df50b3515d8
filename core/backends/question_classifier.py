"""The classifier of questions as stored: its coefficients, and the routes that earned a class.

`data/routers/adaptive.json` comes with the program. `HOME/routers/adaptive.json` is one trained on a user's
own labelled sets (`python -m scripts.routing --own`) and goes first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.backends.trained_files import read_trained
from core.domain.settings import PROJECT

QuestionClass = Literal[
    "no_retrieval", "exact", "plain", "conceptual", "complex", "conversational", "structured"
]
CLASSES: tuple[QuestionClass, ...] = get_args(QuestionClass)
DEFAULT: QuestionClass = "plain"
DEFAULT_ROUTE = "rerank"  # what any other route has to beat
NO_SEARCH = "no search"
AS_A_RULE = "as a rule"  # the difference of two intercepts, among contributions
SHIPPED = PROJECT / "data" / "routers" / "adaptive.json"
NEEDS: Mapping[str, str] = {"conversational": "conversation before", "structured": "tables"}


@dataclass(frozen=True, slots=True)
class ClassRoute:
    """A route for the questions of a class, and what it gained over the default route on `n` questions of
    `sets`: the mean difference in `metric` with its 95% interval.
    """

    route: str
    metric: str
    gain: float
    low: float
    high: float
    n: int
    sets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionClassifier:
    """Multinomial logistic regression over readable features, with the routes for each class."""

    classes: tuple[str, ...]
    features: tuple[str, ...]
    means: tuple[float, ...]  # mean of each feature in training; a value counts by its difference from it
    coefficients: tuple[tuple[float, ...], ...]  # one row per class, one column per feature
    intercepts: tuple[float, ...]
    least: float  # below this probability a question belongs to the default class
    # for each class, the routes that beat the default one there, best first
    routes: Mapping[str, tuple[ClassRoute, ...]]
    made: Mapping[str, Any] = field(default_factory=dict)  # training data and measured quality
    source: str = ""  # the file it was read from, as shown

    def __post_init__(self) -> None:
        if not self.classes or len(set(self.classes)) < len(self.classes):
            raise ValueError("no classes, or one of them twice")
        if unknown := {*self.classes, *self.routes} - set(CLASSES):
            raise ValueError(f"no such class: {min(unknown)[:40]!r}; there are: {', '.join(CLASSES)}")
        if DEFAULT not in self.classes:
            raise ValueError(f"it lacks the class {DEFAULT}, which a question is of that none is told for")
        wide = len(self.features)
        if {len(self.means), *map(len, self.coefficients)} != {wide}:
            raise ValueError(f"{wide} features need as many means, and coefficients of each class")
        if not len(self.classes) == len(self.coefficients) == len(self.intercepts):
            raise ValueError(f"{len(self.classes)} classes need a row of coefficients and an intercept each")
        numbers = (*self.means, *self.intercepts, *(n for row in self.coefficients for n in row))
        if not all(map(math.isfinite, numbers)):
            raise ValueError("a coefficient is not a finite number")
        if not 0 <= self.least <= 1:
            raise ValueError(f"least {self.least:g}; wanted 0 <= least <= 1")

    def logits(self, values: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Shape (n, classes), from the values of the features, shape (n, features). A class that a question
        cannot be of, for lack of a conversation or of tables, has minus infinity.
        """
        given = np.asarray(values, np.float64).reshape(-1, len(self.features))
        found: NDArray[np.float64] = (given - np.array(self.means)) @ np.array(self.coefficients).T
        found += np.array(self.intercepts)
        for name, feature in NEEDS.items():
            if name in self.classes and feature in self.features:
                lacking = given[:, self.features.index(feature)] == 0
                found[lacking, self.classes.index(name)] = -np.inf
        return found

    def probabilities(self, values: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Of each class, shape (n, classes): the softmax of `logits`.

        Source: Cox 1966, "Some procedures connected with the logistic qualitative response curve".
        """
        found = self.logits(values)
        found = np.exp(found - found.max(axis=1, keepdims=True))
        value: NDArray[np.float64] = found / found.sum(axis=1, keepdims=True)
        return value

    def contributions(self, values: Sequence[float], chosen: str, other: str) -> dict[str, float]:
        """Return each feature's contribution to the logit of `chosen` minus that of `other`, the largest in
        size first.

        With the difference of the intercepts (`AS_A_RULE`) they sum to the difference of the logits.
        """
        one, two = self.classes.index(chosen), self.classes.index(other)
        rows = np.array(self.coefficients)
        parts = (np.asarray(values, np.float64) - np.array(self.means)) * (rows[one] - rows[two])
        found = dict(zip(self.features, map(float, parts), strict=True))
        found[AS_A_RULE] = self.intercepts[one] - self.intercepts[two]
        return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def read(home: Path | None = None) -> QuestionClassifier:
    """Return the classifier trained on your own sets if there is one, else the shipped one.

    Raises Unavailable if the file is missing or damaged.
    """
    path = SHIPPED
    if home is not None and (own := trained(home)).is_file():
        path = own
    return read_trained(path, QuestionClassifier, "the classifier", "python -m scripts.routing")


def trained(home: Path) -> Path:
    """Return the file of a classifier trained on your own sets."""
    return home / "routers" / "adaptive.json"
