"""The report of a release: the route, the reasons, its costs and losses, the certainty, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core.domain import people
from core.domain.machine import machine
from core.domain.program import version
from core.evaluation.comparison import paired
from core.evaluation.release.against import Against
from core.evaluation.release.gate import Decision
from core.evaluation.release.ladder import climb, in_words
from core.evaluation.release.measured import UNJUDGED, Measured
from core.evaluation.templating import render, sentences

TOP = 10  # questions that are listed
UNKNOWN = "not recorded"


def report(
    measured: Measured,
    decision: Decision,
    against: Against | None = None,
    *,
    kind: Literal["html", "markdown"] = "html",
) -> str:
    """Return the whole report; the same input gives the same text. `against`: the comparison with a
    snapshot.
    """
    who = people.require("release")
    people.record("release report", measured.name)
    other = opponent(decision, decision.shown)
    return render(
        "release.html" if kind == "html" else "release.md",
        title=f"Release decision: {measured.figures.dataset or measured.name}",
        measured=measured,
        decision=decision,
        against=against,
        account=who.account,
        other=other,
        lost=worse_at(measured, decision.shown, other, decision.criteria.metric) if other else None,
        top=TOP,
        ladder=in_words(climb(measured, decision), measured),
        limits=limits(measured, decision),
        setup=setup(measured, decision),
    )


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
    figures, run = measured.figures, measured.first_run()
    settings: Mapping[str, Any] = run.settings if run else {}
    parameters = measured.parameters(decision.shown).items()
    model = f"{settings['llm']}, {settings.get('llm endpoint', '')}" if "llm" in settings else UNKNOWN
    split = f"{figures.dataset or UNKNOWN}, split {figures.split}" if figures.split else UNKNOWN
    return [
        ("evaluation", measured.name),
        ("labelled set", split),
        ("corpus", figures.corpus or UNKNOWN),
        ("corpus fingerprint", figures.fingerprint or UNKNOWN),
        ("first question asked", run.created if run else UNKNOWN),
        ("parameters", ", ".join(f"{name} = {value}" for name, value in parameters) or "none"),
        ("language model", model),
        ("embedder", str(settings.get("embedder", UNKNOWN))),
        ("timing", figures.timing or UNKNOWN),
        ("RouteScope", version()),
        (
            "machine of the measurements",
            figures.machine or f"{UNKNOWN}; this report was written on {machine()}",
        ),
    ]
