"""The size of the difference between two routes, and the smallest difference that would have been
detected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from core.evaluation import power
from core.evaluation.power import POWER
from core.evaluation.statistics import ALPHA, Key, between_bounds, compare, least_to_show

SAME = 1e-12  # differences below are rounding: the question is a tie
LEAST_DIFFERING = 6  # questions; the spread of fewer differences says nothing about that of others


def family(differences: Mapping[Key, Sequence[float]]) -> dict[Key, dict[str, Any]]:
    """Describe paired differences, route minus baseline for each question, as one family (see
    core.evaluation.statistics.compare).

    For each key: "delta" their mean, "ci95" the interval that the "verdict" rests on, "n", "sd" and Cohen's
    "d_z" (None if nothing varies), "wins", "ties", "losses", "superiority" (wins and half the ties over n),
    "p", "p_holm", and the smallest difference that would be shown with a power of 0.8: "detectable" at alpha
    alone and "detectable_holm" at alpha over the number of comparisons, which is what Holm asks of the
    smallest p (None if it cannot be determined). A key without differences is left out.
    """
    known = {key: list(column) for key, column in differences.items() if len(column)}
    bounded = between_bounds(known.values())
    found: dict[Key, dict[str, Any]] = {}
    for key, shown in compare(known).items():
        one = effect(known[key])
        found[key] = {
            "delta": one["delta"],
            "ci95": list(shown.interval) if shown.interval else None,
            "p": shown.p,
            "p_holm": shown.p_holm,
            "verdict": shown.verdict,
            **one,
            "detectable": detectable_of(one, bounded=bounded),
            "detectable_holm": detectable_of(one, alpha=ALPHA / len(known), bounded=bounded),
        }
    return found


def detectable_of(row: Mapping[str, Any], *, alpha: float = ALPHA, bounded: bool = True) -> float | None:
    """Return `detectable` of a row of `family`; None if fewer than LEAST_DIFFERING questions differ."""
    if row.get("wins", 0) + row.get("losses", 0) < LEAST_DIFFERING:
        return None
    return detectable(int(row["n"]), row.get("sd"), alpha=alpha, bounded=bounded)


def effect(differences: Sequence[float]) -> dict[str, Any]:
    """Return the size of an effect from its paired differences, one or more.

    d_z is the mean over the standard deviation of the differences (Cohen 1988, section 2.3.5). The
    probability of superiority counts a tie as half a win (Grissom 1994).
    """
    values = np.asarray(differences, dtype=float)
    count = len(values)
    wins, losses = int((values > SAME).sum()), int((values < -SAME).sum())
    ties = count - wins - losses
    sd = float(values.std(ddof=1)) if count > 1 else None
    sd = 0.0 if sd is not None and sd < SAME else sd
    delta = float(values.mean()) if ties < count else 0.0
    return {
        "delta": delta,
        "n": count,
        "sd": sd,
        "d_z": delta / sd if sd else None,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "superiority": (wins + ties / 2) / count,
    }


def detectable(n: int, sd: float | None, *, alpha: float = ALPHA, bounded: bool = True) -> float | None:
    """Return the smallest true mean difference that `n` questions would show with the power POWER.

    `sd` is the measured standard deviation of the differences; its upper 80% limit counts, so that in four of
    five cases the power is at least that. None if it cannot be determined: without variation, with fewer
    questions than can show any difference, or if a metric between 0 and 1 cannot differ so much.
    """
    if not sd or n < least_to_show(1, alpha):
        return None
    found = power.detectable(n, power.upper_sd(sd, n), alpha=alpha, bounded=bounded)
    return None if found > 1 and bounded else found


def smallest(
    comparisons: Mapping[str, Mapping[str, Mapping[str, Any]]], metric: str
) -> dict[str, Any] | None:
    """Summarise what a set of questions can tell apart in `metric`: over the comparisons, route -> metric ->
    figures of `family`, the median smallest detectable difference, its range, and over how many; None without
    any.
    """
    rows = [by[metric] for by in comparisons.values() if metric in by]
    known = [row for row in rows if row.get("detectable_holm") is not None]
    if not known:
        return None
    plain, strict = ([row[key] for row in known] for key in ("detectable", "detectable_holm"))
    return {
        "comparisons": len(known),
        "questions": max(row["n"] for row in known),
        "power": POWER,
        "median": float(np.median(plain)),
        "median_holm": float(np.median(strict)),
        "least_holm": min(strict),
        "most_holm": max(strict),
    }
