"""The facts behind a release: questions a route does worse at, the labelled set and its limits, the
settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.domain.errors import BadInput
from core.domain.machine import machine
from core.domain.program import version
from core.domain.types import Run
from core.evaluation.pairs import paired
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import UNJUDGED, Measured
from core.evaluation.templating import sentences

UNKNOWN = "not recorded"


@dataclass(frozen=True, slots=True)
class Worse:
    """A question at which a route scores less than another: the values of both."""

    question: str
    text: str
    mode: str
    value: float
    other: float


def opponent(decision: Decision, route: str) -> str | None:
    """Return the opponent of a route: the baseline, or the best other route if it is the baseline itself."""
    if route != decision.baseline:
        return decision.baseline
    others = [one for one in decision.candidates if one.route != route and one.mean is not None]
    return max(others, key=lambda one: one.mean or 0.0).route if others else None


def worse_at(measured: Measured, route: str, other: str, metric: str) -> list[Worse] | None:
    """Return the questions at which `route` scores less, the largest difference first, or None if not
    known.
    """
    values, evaluation = measured.values(metric), measured.evaluation
    if values is None or evaluation is None:
        return None
    apart = paired(values[route], values[other])
    lost = sorted((delta, id) for id, delta in apart.items() if delta < -1e-12)
    asked = evaluation.questions
    return [
        Worse(id, asked[id].query.text, asked[id].mode or "", values[route][id], values[other][id])
        for _, id in lost
    ]


def limits(measured: Measured, decision: Decision) -> list[str]:
    """Return the limits of the labelled set, a sentence each."""
    return sentences("limits.limits", measured, decision, measured.mean(decision.shown, UNJUDGED))


def setup(measured: Measured, decision: Decision) -> list[tuple[str, str]]:
    """Under which settings it was measured, as names and values."""
    figures, run = measured.figures, _first_run(measured)
    settings: Mapping[str, Any] = run.settings if run else {}
    parameters = used_parameters(measured, decision.shown)
    split = figures.split
    return [
        ("evaluation", measured.name),
        ("labelled set", f"{figures.dataset or UNKNOWN}, split {split}" if split else UNKNOWN),
        ("corpus", figures.corpus or UNKNOWN),
        ("corpus fingerprint", figures.fingerprint or UNKNOWN),
        ("first question asked", run.created if run else UNKNOWN),
        ("parameters", ", ".join(f"{name} = {value}" for name, value in parameters.items()) or "none"),
        (
            "language model",
            f"{settings['llm']}, {settings.get('llm endpoint', '')}" if "llm" in settings else UNKNOWN,
        ),
        ("embedder", str(settings.get("embedder", UNKNOWN))),
        ("timing", figures.timing or UNKNOWN),
        ("RouteScope", version()),
        (
            "machine of the measurements",
            figures.machine or f"{UNKNOWN}; this report was written on {machine()}",
        ),
    ]


def used_parameters(measured: Measured, route: str) -> dict[str, Any]:
    """Return the parameters a route was measured with, those at their defaults too; as given if it is not
    known.
    """
    from core.routes.registry import routes

    spec = measured.evaluation.spec if measured.evaluation else {}
    given = dict((spec.get("parameters") or {}).get(route) or {})
    known = routes().get(route)
    try:
        return dict(known.settle(given)) if known else given
    except BadInput:  # measured by another version, whose parameters were others
        return given


def asked_on(measured: Measured) -> str:
    """Return when the first question was asked, ISO 8601; "not recorded" if no run was saved."""
    run = _first_run(measured)
    return run.created if run else UNKNOWN


def _first_run(measured: Measured) -> Run | None:
    evaluation = measured.evaluation
    if evaluation is None:
        return None
    asked = next((id for id in evaluation.questions if id in evaluation.outcomes), None)
    try:
        return evaluation.run(asked) if asked is not None else None
    except BadInput:  # evaluated without saving runs
        return None
