"""The escalation ladder: from plain search up to the criteria, with the gain of each rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.domain.needs import Family
from core.evaluation.comparison import Difference, pair, paired
from core.evaluation.release.checks import Candidate
from core.evaluation.release.gate import Decision
from core.evaluation.release.measured import Measured
from core.evaluation.templating import sentences
from core.routes.registry import routes

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


def in_words(ladder: Ladder, measured: Measured) -> list[str]:
    """Return one sentence per rung, and a last one on where the ladder ends."""
    return sentences("ladder.rungs", ladder, measured)
