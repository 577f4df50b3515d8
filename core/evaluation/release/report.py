"""The report of a release: the route, the reasons, its costs and losses, the certainty, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.domain import people
from core.domain.machine import machine
from core.domain.needs import Family
from core.domain.program import version
from core.evaluation.comparison import Difference, pair, paired
from core.evaluation.release.gate import Candidate, Decision
from core.evaluation.release.measured import UNJUDGED, Measured
from core.evaluation.release.snapshot import Against
from core.evaluation.templating import render, sentences
from core.routes.registry import routes

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
        ladder=sentences("ladder.rungs", climb(measured, decision), measured),
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


# From the least to the most work for a question. A route is on the rung of its family.
RUNGS: tuple[tuple[str, tuple[Family, ...]], ...] = (
    ("plain search", ("baseline",)),
    ("hybrid search, better indexes, reranking", ("hybrid", "index", "scoring", "memory")),
    ("rewritten, hypothetical or split queries", ("query",)),
    ("correction of the results", ("corrective",)),
    ("routing, iteration and agents", ("agentic", "structured")),
)
# How much work these are nobody knows; they stand above ours, where there are any.
OWN: tuple[str, tuple[Family, ...]] = ("your own pipelines", ("your pipeline",))
FOUND = "hit@10"  # a question is taken for answered when this is 1

State = Literal["taken", "skipped", "reached", "not needed", "not measured", "equal"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One step up: its route, and that route's gain over the last taken rung below. `state`: taken (it gains,
    and is not the route to ship), skipped (no gain is shown), reached (its route ships: the ladder ends
    here), not needed (above that), not measured, equal (its routes, `others`, returned the same as a route on
    another rung). `gain` is None on the lowest rung and if nothing can be compared. `answered`: the share of
    questions with a relevant passage in the first ten on this rung or a taken rung below it. `others` were
    measured too, and rank below the route.
    """

    title: str
    state: State
    route: str | None = None
    candidate: Candidate | None = None
    gain: Difference | None = None
    below: str | None = None
    answered: float | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs, the lowest first; `reached`: the route that ships, None if that is not decided."""

    metric: str
    rungs: tuple[Rung, ...]
    reached: str | None

    @property
    def taken(self) -> tuple[Rung, ...]:
        """Return the rungs that are worth their cost, up to the rung that ships."""
        return tuple(rung for rung in self.rungs if rung.state in ("taken", "reached"))


def climb(measured: Measured, decision: Decision) -> Ladder:
    """Return the ladder up to the route that `decision` ships.

    On the rung of that route stands it; on another the cheapest of its routes that pass, else the best by the
    metric. The lowest rung measured is taken; one above is taken if its gain on the last one taken is shown,
    the interval lying above 0, and the ladder ends at the route that ships.
    """
    metric = decision.criteria.metric
    values = measured.values(metric) or {}
    family_of = {one.route: _family(one.route, measured) for one in decision.candidates}
    twins = {route: _family(route, measured) for one in decision.equal for route in one.others}
    found = measured.values(FOUND) or {}
    asked = {question for by in found.values() for question in by}
    rungs: list[Rung] = []
    last: Candidate | None = None
    reached: str | None = None
    answered: set[str] = set()
    for title, families in (*RUNGS, OWN) if OWN[1][0] in family_of.values() else RUNGS:
        one, others = _standing(decision, families, family_of, twins)
        if one is None:
            rungs.append(Rung(title, "equal" if others else "not measured", others=others))
            continue
        gain, route = None, one.route
        state: State = "skipped"
        if last is not None and route in values and last.route in values:
            gain = pair(route, last.route, list(paired(values[route], values[last.route]).values()))
        below = last.route if last is not None else None
        mine = answered | {question for question, value in found.get(route, {}).items() if value >= 1}
        if reached is not None:
            state = "not needed"
        elif route == decision.chosen:
            state, reached = "reached", route
        elif last is None or (gain is not None and gain.low > 0):
            state = "taken"
        if state in ("taken", "reached"):
            last, answered = one, mine
        share = len(mine) / len(asked) if asked else None
        rungs.append(Rung(title, state, route, one, gain, below, share, others))
    return Ladder(metric, tuple(rungs), reached)


def _family(route: str, measured: Measured) -> Family | None:
    """Return the family of a route; one whose replies were read from a file is a pipeline of the user's."""
    known = routes().get(route)
    if known is None:
        return OWN[1][0] if measured.figures.routes[route].source else None
    return known.family


def _standing(
    decision: Decision,
    families: Sequence[Family],
    family_of: Mapping[str, Family | None],
    twins: Mapping[str, Family | None],
) -> tuple[Candidate | None, tuple[str, ...]]:
    """Return the route on a rung, and the other measured routes of its families. If none of them is a
    candidate, return None and the routes that are equal to a route on another rung.
    """
    mine = [one for one in decision.candidates if family_of[one.route] in families]
    ships = [one for one in mine if one.route == decision.chosen]
    passing = ships or [one for one in mine if one.passes]
    scored = [one for one in mine if one.mean is not None]
    if passing:
        chosen = min(passing, key=lambda one: (one.expense, -(one.mean or 0.0)))
    elif scored:
        chosen = min(scored, key=lambda one: (-(one.mean or 0.0), one.expense))
    else:
        return None, tuple(route for route, family in twins.items() if family in families)
    return chosen, tuple(one.route for one in mine if one is not chosen)
