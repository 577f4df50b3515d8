"""Offers thresholds that were tried as parameters of the next run."""

from __future__ import annotations

from collections.abc import Mapping

from core.analysis.what_if.parameters import threshold_parameters
from core.domain.errors import BadInput
from core.domain.types import RouteResult, Run, Span
from core.routes.registry import routes
from ui.app import next_run


def offer(
    run: Run, result: RouteResult, span: Span, tried: Mapping[str, float], stored: Mapping[str, float]
) -> None:
    """Draw the offer for values of `tried` that differ from `stored`, by argument of the step.

    Nothing is drawn for an unknown route.
    """
    route = routes().get(result.route)
    if route is None:
        return
    changes = {name: value for name, value in tried.items() if value != stored[name]}
    lacking = f"{route.title} has no parameter for this, so the next run cannot use it."
    try:
        parameters = threshold_parameters(route, span, changes)
    except BadInput as error:
        parameters, lacking = None, str(error)
    next_run.offer(run, route, parameters, lacking)
