"""The routes compared with the baselines: every figure with its interval, and one planned comparison per
route.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.domain.needs import Family
from core.evaluation import effects
from core.evaluation.audit.cases import known, live
from core.evaluation.comparison import ByRoute, counted, differences, means_of
from core.evaluation.outcome import Outcome, Outcomes
from core.routes.registry import routes as every

# The figure that a family of routes is to improve; of others it is what is found.
CLAIMS: Mapping[Family, str] = {"corrective": "supported_accuracy", "structured": "correct"}
FOUND = "recall@10"
COMPARED = ("delta", "ci95", "n", "wins", "ties", "losses")  # of a difference that was not planned


def claim(route: str, figures: Sequence[str]) -> str:
    """Return the figure that a route claims to improve, of those that the baseline has."""
    wanted = CLAIMS.get(every()[route].family, FOUND)
    return wanted if wanted in figures else FOUND


def table(
    outcomes: Outcomes, values: ByRoute, audited: Sequence[str], baselines: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return a row a route: the mean of each figure with its interval under "ci95" and over how many
    questions under "counts", the differences from each baseline under "against", and what it took under
    "use".

    "planned" is the difference of an audited route from the first baseline in the figure that it claims to
    improve, "claim": one Holm family.
    """
    names = known(values)
    rows = means_of(values, names, names)
    comparable = known({baselines[0]: values[baselines[0]]})
    judged = {route: claim(route, comparable) for route in audited}
    planned = effects.family(
        {route: differences(values, route, baselines[0], figure) for route, figure in judged.items()}
    )
    for route, row in rows.items():
        row |= {"counts": counted(values[route], names), "use": use([by[route] for by in outcomes.values()])}
        row["against"] = {}
        for one in baselines:
            if one != route and one in values:
                family = effects.family({name: differences(values, route, one, name) for name in names})
                row["against"][one] = {
                    name: {key: found[key] for key in COMPARED} for name, found in family.items()
                }
        if route in judged:
            row |= {"claim": judged[route], "planned": planned.get(route)}
    return rows


def use(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a route's mean usage per question, and how often it failed. "seconds" are the route's own, as if
    it ran alone; calls from the cache or a recording count the time they took when they were made.
    "seconds_timed" cover only the "timed" questions, whose calls were all made for them, by this route or by
    one that ran in parallel.
    """
    ok = [one for one in outcomes if one.status == "ok"]
    now = [one.ms for one in ok if all(live(call, one.began) for call in one.asked)]
    count = max(1, len(ok))
    return {
        "asked": len(outcomes),
        "failed": len(outcomes) - len(ok),
        "calls": sum(one.calls for one in ok) / count,
        "tokens": sum(one.tokens for one in ok) / count,
        "seconds": sum(one.ms for one in ok) / count / 1000,
        "seconds_timed": sum(now) / len(now) / 1000 if now else None,
        "timed": len(now),
        "errors": sorted({one.error for one in outcomes if one.error})[:5],
    }
