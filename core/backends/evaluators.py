"""Stored retrieval evaluators: thresholds, and the coefficients of the evaluator without a language model.

`data/evaluators/NAME.json` come with the program. `HOME/evaluators/CORPUS.json` is a lightweight one trained
for a corpus (`python -m scripts.evaluator`) and takes precedence there.
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

    def grades(self, signals: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return the probability that each passage is relevant, shape (n,), from its features, shape (n,
        features).

        Source: logistic regression, Cox 1958, "The Regression Analysis of Binary Sequences".
        """
        values = np.asarray(signals, np.float64).reshape(-1, len(self.features))
        return logistic(values @ np.array(self.coefficients) + self.intercept)


def logistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), without overflow."""
    grades: NDArray[np.float64] = 0.5 * (1 + np.tanh(0.5 * values))
    return grades


def read(name: Which, home: Path | None = None, corpus: str = "") -> Evaluator:
    """Return the evaluator `name`: for "lightweight" the one trained for `corpus`, else the shipped one.

    Raises Unavailable if the file is missing or damaged.
    """
    path = SHIPPED / f"{name}.json"
    if name == LIGHTWEIGHT and home is not None and (own := trained(home, corpus)).is_file():
        path = own
    return read_trained(
        path,
        lambda stored, shown: _parsed(stored, name, shown),
        "the evaluator",
        "python -m scripts.evaluator",
    )


def trained(home: Path, corpus: str) -> Path:
    """Return the file of a lightweight evaluator trained for `corpus`."""
    return home / "evaluators" / f"{corpus}.json"


def _parsed(stored: Any, name: Which, source: str) -> Evaluator:
    found = Evaluator(
        name,
        float(stored["low"]),
        float(stored["high"]),
        tuple(map(str, stored["features"])),
        tuple(map(float, stored["coefficients"])),
        float(stored["intercept"]),
        str(stored["embedder"]),
        dict(stored["made"]),
        source,
    )
    if stored["name"] != name or name not in get_args(Which):
        raise ValueError(f"it is the evaluator {str(stored['name'])[:40]!r}, not {name!r}")
    if not 0 <= found.low <= found.high <= 1:
        raise ValueError(f"thresholds {found.low:g} and {found.high:g}; wanted 0 <= low <= high <= 1")
    if name == LIGHTWEIGHT and found.features != FEATURES:
        raise ValueError(f"its features are {', '.join(found.features)}; wanted: {', '.join(FEATURES)}")
    if len(found.coefficients) != len(found.features):
        raise ValueError(f"{len(found.coefficients)} coefficients for {len(found.features)} features")
    if not all(map(math.isfinite, (*found.coefficients, found.intercept))):
        raise ValueError("a coefficient is not a finite number")
    return found
