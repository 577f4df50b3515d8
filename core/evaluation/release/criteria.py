"""What a route must meet to be shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from core.domain.errors import BadInput


@dataclass(frozen=True, slots=True)
class Criteria:
    """Limits that a route must meet; None: no such limit.

    `minimum` is of the mean of `metric`. `max_cost` is for 1,000 questions in the currency of the prices in
    the settings, `max_tokens` and `max_calls` for one question. `max_failed` and `max_unjudged` are shares, 0
    to 1. `no_loss`: no kind of question at which the route is shown to be worse than the baseline. `cheaper`:
    the cheapest route that is not shown to be worse than the best one is chosen, not the best one.
    `unlike_machines`: times count although they are of unlike machines.
    """

    metric: str = "ndcg@10"
    minimum: float | None = None
    max_p95_ms: float | None = None
    max_cost: float | None = None
    max_tokens: float | None = None
    max_calls: float | None = None
    max_failed: float | None = 0.0
    max_unjudged: float | None = None
    no_loss: bool = True
    cheaper: bool = True
    unlike_machines: bool = False

    def __post_init__(self) -> None:
        for name in ("max_p95_ms", "max_cost", "max_tokens", "max_calls", "max_failed", "max_unjudged"):
            _check(name, getattr(self, name), 1.0 if name in ("max_failed", "max_unjudged") else None)
        if self.minimum is not None and not _finite(self.minimum):
            raise BadInput(f"minimum={self.minimum!r}; give a number")
        if not isinstance(self.metric, str) or not self.metric:
            raise BadInput(f"metric={self.metric!r}; give the name of a measure, such as ndcg@10")
        for name in ("no_loss", "cheaper", "unlike_machines"):
            if not isinstance(getattr(self, name), bool):
                raise BadInput(f"{name}={getattr(self, name)!r}; give true or false")

    def document(self) -> dict[str, Any]:
        """The criteria as JSON values."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Criteria:
        """The opposite; BadInput for what is none."""
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
