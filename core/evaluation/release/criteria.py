"""What a route must meet to be shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from core.domain.errors import BadInput
from core.evaluation.verdict import MARGIN


@dataclass(frozen=True, slots=True)
class Criteria:
    """Limits that a route must meet (None: no such limit), and how sure the choice must be."""

    metric: str = "ndcg@10"
    # least mean of the metric
    minimum: float | None = None
    max_p95_ms: float | None = None
    # for 1,000 questions, in the currency of the prices
    max_cost: float | None = None
    # for one question
    max_tokens: float | None = None
    max_calls: float | None = None
    # shares, 0 to 1
    max_failed: float | None = 0.0
    max_unjudged: float | None = None
    # reject routes that are shown to be worse than the baseline on a kind of question
    no_loss: bool = True
    # ship the cheapest route that is good enough, not only the one with the highest mean
    cheaper: bool = True
    # use times although they were measured on unlike machines
    unlike_machines: bool = False
    # the loss of the metric that is accepted for a cheaper route
    margin: float = MARGIN
    # scored questions needed to ship and to call routes equivalent; None: 25, and 3 / margin
    min_questions: int | None = None
    # the smallest drop since an earlier release that fails a build; None: the margin
    min_effect: float | None = None

    @property
    def least_drop(self) -> float:
        """The smallest drop since an earlier release that fails a build."""
        return self.margin if self.min_effect is None else self.min_effect

    def __post_init__(self) -> None:
        for name in ("max_p95_ms", "max_cost", "max_tokens", "max_calls", "max_failed", "max_unjudged"):
            _check(name, getattr(self, name), 1.0 if name in ("max_failed", "max_unjudged") else None)
        if self.minimum is not None and not _finite(self.minimum):
            raise BadInput(f"minimum={self.minimum!r}; give a number")
        if not isinstance(self.metric, str) or not self.metric:
            raise BadInput(f"metric={self.metric!r}; give the name of a measure, such as ndcg@10")
        for name in ("margin", "min_effect"):
            _check(name, getattr(self, name), 1.0)
        if self.margin is None:
            raise BadInput("margin=None; give 0 to 1")
        least = self.min_questions
        if least is not None and (not isinstance(least, int) or isinstance(least, bool) or least < 1):
            raise BadInput(f"min_questions={least!r}; give a whole number from 1")
        for name in ("no_loss", "cheaper", "unlike_machines"):
            if not isinstance(getattr(self, name), bool):
                raise BadInput(f"{name}={getattr(self, name)!r}; give true or false")

    def document(self) -> dict[str, Any]:
        """Return the criteria as JSON values."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Criteria:
        """Read what `document` returned. Raises BadInput if these are not criteria."""
        try:
            return cls(**document)
        except TypeError as error:
            raise BadInput(f"these are not valid criteria: {error}") from None


def _check(name: str, value: Any, most: float | None) -> None:
    if value is None:
        return
    if not _finite(value) or value < 0 or (most is not None and value > most):
        raise BadInput(f"{name}={value!r}; give 0 {'or more' if most is None else f'to {most:g}'}")


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
