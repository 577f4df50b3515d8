"""Stored retrieval evaluators: thresholds, and the coefficients of the evaluator without a language model.

`data/evaluators/NAME.json` come with the program. `HOME/evaluators/CORPUS.json` is a lightweight one trained
for a corpus (`python -m scripts.evaluator`) and takes precedence there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.trained_files import read_trained
from core.domain.errors import Unavailable
from core.domain.settings import PROJECT

Which = Literal["lightweight", "llm", "cross-encoder"]
LIGHTWEIGHT: Which = "lightweight"
SHIPPED = PROJECT / "data" / "evaluators"
FEATURES = (  # the order of an evaluator's coefficients
    "cosine",
    "bm25",
    "words found",
    "maxsim",
    "cosine above others",
    "maxsim above others",
    "log of words",
)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The thresholds of an evaluator of passages, and what its grades are computed from.

    A grade from `high` on is trusted, one below `low` is not, see `core.steps.grade.decide`. With `features`
    the grade is the logistic function of `intercept` plus the features times `coefficients`; without, a model
    gives it. `made` says how it was made: sets, date, what it is worth.
    """

    name: Which
    low: float
    high: float
    features: tuple[str, ...] = ()
    coefficients: tuple[float, ...] = ()
    intercept: float = 0.0
    embedder: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # the file it was read from, as shown

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise ValueError(f"thresholds {self.low:g} and {self.high:g}; wanted 0 <= low <= high <= 1")
        if self.name == LIGHTWEIGHT and self.features != FEATURES:
            raise ValueError(f"its features are {', '.join(self.features)}; wanted: {', '.join(FEATURES)}")
        if len(self.coefficients) != len(self.features):
            raise ValueError(f"{len(self.coefficients)} coefficients for {len(self.features)} features")
        if not all(map(math.isfinite, (*self.coefficients, self.intercept))):
            raise ValueError("a coefficient is not a finite number")

    def grades(self, signals: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return the probability that each passage is relevant, shape (n,), from its features, shape (n,
        features).

        Source: logistic regression, Cox 1958, "The Regression Analysis of Binary Sequences".
        """
        values = np.asarray(signals, np.float64).reshape(-1, len(self.features))
        return logistic(values @ np.array(self.coefficients) + self.intercept)


def logistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * values))


def read(name: Which, home: Path | None = None, corpus: str = "") -> Evaluator:
    """Return the evaluator `name`: for "lightweight" the one trained for `corpus`, else the shipped one.

    Raises Unavailable if the file is missing or damaged.
    """
    path = SHIPPED / f"{name}.json"
    if name == LIGHTWEIGHT and home is not None and (own := trained(home, corpus)).is_file():
        path = own
    remedy = "python -m scripts.evaluator"
    found = read_trained(path, Evaluator, "the evaluator", remedy)
    if found.name != name:
        raise Unavailable(f"{found.source} is the evaluator {found.name!r}, not {name!r}; {remedy} makes one")
    return found


def trained(home: Path, corpus: str) -> Path:
    """Return the file of a lightweight evaluator trained for `corpus`."""
    return home / "evaluators" / f"{corpus}.json"
