"""The value of each kind of decision: precision, recall, gain when fired, price; and audited routes against
the baselines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from core.analysis.metrics import ANSWERS
from core.domain.needs import Family
from core.evaluation import effects
from core.evaluation.audit.cases import FIGURES, Case, known, live
from core.evaluation.audit.loops import other_way
from core.evaluation.audit.turning import first_of
from core.evaluation.comparison import ByRoute, counted, differences, means_of
from core.evaluation.effects import SAME
from core.evaluation.outcome import Outcome, Outcomes
from core.routes.registry import routes as every

Kind = tuple[str, str]  # route, step


def unpaired(outcomes: Outcomes, turned: Mapping[str, Collection[str]]) -> list[dict[str, Any]]:
    """Return how often the deciding steps of each route (`turned`) first made a decision that no pair names,
    so that it was not turned: a row for each route and step.
    """
    found: dict[Kind, Counter[str]] = {}
    for by in outcomes.values():
        for route, steps in turned.items():
            for taken in first_of(by[route], steps):
                if other_way(taken.step, taken.decision) is None:
                    found.setdefault((route, taken.step), Counter())[taken.decision] += 1
    return [
        {"route": route, "step": step, "decisions": dict(counts.most_common())}
        for (route, step), counts in found.items()
    ]


def table(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return a row for each route and deciding step, in the order they come.

    "n" decisions were turned, of which "fired" had fired; "left_out" counts by reason those that could not be
    compared, which count nowhere else. For each figure under "figures":

    - "fired": of the decisions that fired, those with a value both ways, of which firing was "better", "tied"
      and "worse". "precision" is better / fired: ties are no success.
    - "quiet": the same of those that did not fire, whose other way was to fire; "missed" of them would have
      been better fired. "recall" is better / (better + missed).
    - "gain": fired minus quiet where it fired, as core.evaluation.effects.family: one Holm family over the
      kinds. "gain_had_it_fired": its mean where it did not fire, with an interval.
    - "touched": whether any question's value differs between the two ways.

    "price" is the mean of fired minus quiet where it fired: "calls", "tokens", and "seconds" over the "timed"
    decisions (None: not measured, as all that differed came from the cache).
    """
    kinds: dict[Kind, list[Case]] = {}
    for case in cases:
        kinds.setdefault((case.route, case.step), []).append(case)
    more = {name for case in cases for name in case.fired} - {*FIGURES, *ANSWERS}
    names = [*FIGURES, *sorted(more)]
    tested = {
        name: effects.family({kind: gains(some, name, acted=True) for kind, some in kinds.items()})
        for name in names
    }
    return [
        {
            "route": kind[0],
            "step": kind[1],
            "n": len(some),
            "fired": sum(case.acted for case in some),
            "decisions": dict(Counter(case.decision for case in some).most_common()),
            "left_out": dict(Counter(case.left_out for case in some if case.left_out)),
            "figures": {
                name: found for name in names if (found := _figure(some, name, tested[name].get(kind)))
            },
            "price": _price([case for case in some if case.acted and not case.left_out]),
        }
        for kind, some in kinds.items()
    ]


def gains(cases: Sequence[Case], metric: str, *, acted: bool) -> list[float]:
    """Compute fired minus quiet at each decision that fired, or that did not."""
    return [gain for case in cases if case.acted is acted and (gain := case.gain(metric)) is not None]


def _figure(cases: Sequence[Case], metric: str, gain: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Summarise one figure of one kind, or None if it has no value both ways."""
    fired, quiet = (gains(cases, metric, acted=acted) for acted in (True, False))
    if not fired and not quiet:
        return None
    better, worse = (sum(sign * one > SAME for one in fired) for sign in (1, -1))
    missed = sum(one > SAME for one in quiet)
    other = effects.family({"": quiet}).get("", {"ci95": None})
    return {
        "fired": len(fired),
        "better": better,
        "tied": len(fired) - better - worse,
        "worse": worse,
        "precision": better / len(fired) if fired else None,
        "quiet": len(quiet),
        "missed": missed,
        "recall": better / (better + missed) if better + missed else None,
        "gain": gain,
        "gain_had_it_fired": fmean(quiet) if quiet else None,
        "gain_had_it_fired_ci95": other["ci95"],
        "touched": any(abs(one) > SAME for one in (*fired, *quiet)),
    }


def _price(fired: Sequence[Case]) -> dict[str, Any]:
    seconds = [case.seconds for case in fired if case.seconds is not None]
    return {
        "n": len(fired),
        "calls": fmean(case.calls for case in fired) if fired else None,
        "tokens": fmean(case.tokens for case in fired) if fired else None,
        "seconds": fmean(seconds) if seconds else None,
        "timed": len(seconds),
    }


# The figure that a family of routes is to improve; of others it is what is found.
CLAIMS: Mapping[Family, str] = {"corrective": "supported_accuracy", "structured": "correct"}
FOUND = "recall@10"
COMPARED = ("delta", "ci95", "n", "wins", "ties", "losses")  # of a difference that was not planned


def claim(route: str, figures: Sequence[str]) -> str:
    """Return the figure that a route claims to improve, of those that the baseline has."""
    wanted = CLAIMS.get(every()[route].family, FOUND)
    return wanted if wanted in figures else FOUND


def route_table(
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
