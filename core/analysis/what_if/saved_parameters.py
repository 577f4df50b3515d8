"""Thresholds that were tried on a stored step, as parameters of its route for the next run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.analysis.what_if.parameters import as_parameters
from core.domain.types import Span
from core.routes.declare import Route

CALIBRATED = ("low", "high")  # thresholds whose parameter at 0 stands for the calibrated one
LEAST = 0.001  # used instead of 0 for those


def threshold_parameters(route: Route, span: Span, changes: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the parameters that make `changes` (by the argument of the step), as
    `core.analysis.what_if.parameters.as_parameters`.
    """
    return as_parameters(
        route,
        span,
        {name: value or LEAST if name in CALIBRATED else value for name, value in changes.items()},
    )
