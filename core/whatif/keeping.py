"""Thresholds that were tried on a stored step, as knobs of its route for the next run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.route import Route
from core.types import Span
from core.whatif.knobs import as_knobs, tuned

CALIBRATED = ("low", "high")  # thresholds whose knob at 0 stands for the calibrated one
LEAST = 0.001  # given in place of 0 for those


def threshold_knobs(
    route: Route,
    ran: Mapping[str, Any],
    span: Span,
    changes: Mapping[str, float],
    stored: Mapping[str, float],
) -> dict[str, Any] | None:
    """The knobs that make `changes` (by the input of the step), as `core.whatif.knobs.as_knobs`.

    None also where a knob of that name is another step's: one that the route ran with (`ran`) at another
    value than the step has (`stored`). Raises BadInput for a value that the knob does not allow.
    """
    wanted = {name: value or LEAST if name in CALIBRATED else value for name, value in changes.items()}
    found = as_knobs(route, span, wanted)
    if found is None:
        return None
    for knob in route.knobs:
        for name in tuned(knob) if knob.name in found else ():
            had = ran.get(knob.name, knob.default)
            if name in stored and had != stored[name] and not (name in CALIBRATED and had == 0):
                return None
    return found
