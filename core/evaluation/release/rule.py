"""The limits of a release: which of them a route meets, by its figures alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from core.evaluation.release.criteria import Criteria

State = Literal["passed", "failed", "cannot be told"]
SHOWN = {"cannot be told": "cannot be determined"}  # what people read for the state that is stored


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """A route's figures that the rule uses; None: cannot be determined. `mean` is of the criteria's metric.
    `failed` and `unjudged` are shares. `tokens` and `calls` are per completed question, `cost` per 1,000.
    `lost`: the kinds of question at which the route is shown to be worse than the baseline. `interrupted`:
    not every question was asked.
    """

    route: str
    mean: float | None
    p50_ms: float | None
    p95_ms: float | None
    tokens: float | None
    calls: float | None
    cost: float | None
    failed: float | None
    unjudged: float | None
    lost: int | None
    interrupted: bool

    @property
    def expense(self) -> tuple[float, float, float]:
        """Return its cost as a sort key: price (tokens without prices), model calls, median time."""
        spent = self.tokens if self.cost is None else self.cost
        return _known(spent), _known(self.calls), _known(self.p50_ms)


def states(one: RouteFigures, criteria: Criteria) -> dict[str, State]:
    """Return the state of each criterion asked for, by its field in `criteria`, in order. "minimum" is always
    there, "interrupted" only of an evaluation that was.
    """
    low = criteria.minimum is not None and one.mean is not None and one.mean < criteria.minimum
    found: dict[str, State] = {
        "minimum": "cannot be told" if one.mean is None else "failed" if low else "passed"
    }
    if one.interrupted:
        found["interrupted"] = "cannot be told"
    for name, value, limit in (
        ("max_p95_ms", one.p95_ms, criteria.max_p95_ms),
        ("max_cost", one.cost, criteria.max_cost),
        ("max_tokens", one.tokens, criteria.max_tokens),
        ("max_calls", one.calls, criteria.max_calls),
        ("max_failed", one.failed, criteria.max_failed),
    ):
        if limit is not None:
            found[name] = "cannot be told" if value is None else "passed" if value <= limit else "failed"
    if criteria.max_unjudged is not None:  # more labels may show that it is met
        judged = one.unjudged is not None and one.unjudged <= criteria.max_unjudged
        found["max_unjudged"] = "passed" if judged else "cannot be told"
    if criteria.no_loss:
        found["no_loss"] = "cannot be told" if one.lost is None else "failed" if one.lost else "passed"
    return found


def _known(value: float | None) -> float:
    return inf if value is None else value
