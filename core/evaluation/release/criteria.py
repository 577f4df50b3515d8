"""What a route must meet to be shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from core.domain.errors import BadInput

if TYPE_CHECKING:
    from core.evaluation.release.measured import Measured

LEAST_MS = 1000.0  # what `derived` allows any route: Nielsen 1993, a user's train of thought is kept for 1 s
MOST_FAILED = 0.05  # what `derived` allows at most, however often the baseline fails
SLACK = 0.05  # by how much more of the first ten may be unjudged than of the baseline's


@dataclass(frozen=True, slots=True)
class Criteria:
    """Limits that a route must keep; None: that is not asked for.

    `minimum` is of the mean of `metric`. `max_cost` is for 1,000 questions in the currency of the prices in
    the settings, `max_tokens` and `max_calls` for one question. `max_failed` and `max_unjudged` are shares, 0
    to 1. `no_loss`: no kind of question at which the route is shown to be worse than the baseline. `cheaper`:
    the cheapest route that is not shown to be worse than the best one is chosen, not the best one.
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

    def __post_init__(self) -> None:
        for name in ("max_p95_ms", "max_cost", "max_tokens", "max_calls", "max_failed", "max_unjudged"):
            _check(name, getattr(self, name), 1.0 if name in ("max_failed", "max_unjudged") else None)
        if self.minimum is not None and not _finite(self.minimum):
            raise BadInput(f"minimum={self.minimum!r}; give a number")
        if not isinstance(self.metric, str) or not self.metric:
            raise BadInput(f"metric={self.metric!r}; give the name of a measure, such as ndcg@10")
        for name in ("no_loss", "cheaper"):
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
            raise BadInput(f"these are no criteria: {error}") from None


def derived(measured: Measured, metric: str = "ndcg@10") -> Criteria:
    """Criteria to begin with: as good as the baseline, not much slower, and judged about as well.

    Without a figure of the baseline its limit is left out. A baseline that fails often does not meet them.
    """
    from core.evaluation.release.measured import UNJUDGED

    base = measured.baseline
    mean, p95 = measured.mean(base, metric), measured.p95(base)
    unjudged, failed = measured.mean(base, UNJUDGED), measured.failed(base)
    return Criteria(
        metric,
        minimum=None if mean is None else int(mean * 100) / 100,
        max_p95_ms=None if p95 is None else float(max(LEAST_MS, 100 * round(2 * p95 / 100))),
        max_failed=0.0 if not failed else min(MOST_FAILED, int(failed * 100 + 1) / 100),
        max_unjudged=None if unjudged is None else round(min(1.0, unjudged + SLACK), 2),
    )


def _check(name: str, value: Any, most: float | None) -> None:
    if value is None:
        return
    if not _finite(value) or value < 0 or (most is not None and value > most):
        raise BadInput(f"{name}={value!r}; give 0 {'or more' if most is None else f'to {most:g}'}")


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
