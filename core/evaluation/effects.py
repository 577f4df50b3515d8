"""How large a difference between two routes is, and how small a one would have been seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from core.evaluation.statistics import ALPHA, Key, holm, intervals, paired_ps, verdict

POWER = 0.8
SAME = 1e-12  # differences below are rounding: the question is a tie
_FAR = 1e4  # standard errors; a difference that is not seen at this is not looked for


def family(differences: Mapping[Key, Sequence[float]]) -> dict[Key, dict[str, Any]]:
    """What paired differences, route minus baseline for each question, show: one Holm family.

    For each key: "delta" their mean, "ci95" its paired bootstrap interval (None below two questions), "n",
    "sd" and Cohen's "d_z" (None where nothing varies), "wins", "ties", "losses", "superiority" (wins and half
    the ties over n), "p" of the randomisation test, "p_holm", "verdict", and the smallest difference that
    would be seen with a power of 0.8: "detectable" at alpha alone and "detectable_holm" at alpha over the
    number of comparisons, which is what Holm asks of the smallest p. A key without differences is left out.
    """
    known = {key: list(column) for key, column in differences.items() if len(column)}
    columns = list(known.values())
    p_values = dict(zip(known, paired_ps(columns), strict=True))
    adjusted = holm(p_values)
    found: dict[Key, dict[str, Any]] = {}
    for (key, column), ends in zip(known.items(), intervals(columns), strict=True):
        one = effect(column)
        found[key] = {
            "delta": one["delta"],
            "ci95": list(ends) if ends else None,
            "p": p_values[key],
            "p_holm": adjusted[key],
            "verdict": verdict(one["delta"], adjusted[key]),
            **one,
            "detectable": detectable(one["n"], one["sd"]),
            "detectable_holm": detectable(one["n"], one["sd"], alpha=ALPHA / len(known)),
        }
    return found


def effect(differences: Sequence[float]) -> dict[str, Any]:
    """The size of an effect from its paired differences, one or more.

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


def detectable(n: int, sd: float | None, *, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest true mean difference that a two-sided paired t-test over `n` questions would call shown
    with probability `power`, where differences vary by `sd`; None below two questions or without variation.

    The randomisation test has the same power for means of many questions (Lehmann & Romano 2005, 15.2).
    """
    if sd is None or sd <= 0 or n < 2:
        return None
    standard = _standard(n, alpha, power)
    return None if standard is None else standard * sd


def power_of(n: int, standard: float, *, alpha: float = ALPHA) -> float:
    """The power of a two-sided paired t-test for a true difference of `standard` standard deviations: both
    tails of the noncentral t distribution (Cohen 1988, chapter 2).
    """
    from scipy.special import ncfdtr, stdtrit  # scipy.stats has the same behind checks that take far longer

    if standard == 0:
        return alpha
    # As the upper tail of its square, a noncentral F: scipy's nct has no value for the far lower tail of t.
    return 1.0 - float(ncfdtr(1, n - 1, standard**2 * n, stdtrit(n - 1, alpha / 2) ** 2))


@lru_cache(maxsize=4096)
def _standard(n: int, alpha: float, power: float) -> float | None:
    """The smallest detectable difference in standard deviations; None where none is found."""
    from scipy.optimize import brentq

    high = 1.0
    while not power_of(n, high / sqrt(n), alpha=alpha) >= power:
        high *= 2
        if high > _FAR:
            return None
    return float(brentq(lambda far: power_of(n, far / sqrt(n), alpha=alpha) - power, 0.0, high)) / sqrt(n)


def smallest(
    comparisons: Mapping[str, Mapping[str, Mapping[str, Any]]], metric: str
) -> dict[str, Any] | None:
    """What a set of questions can tell apart in `metric`: over the comparisons (route -> metric -> figures of
    `family`), the median smallest detectable difference, its range, and over how many; None without any.
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
