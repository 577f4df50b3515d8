"""Kinds of question at which a route is worse than the baseline, and losses the set is too small to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.evaluation import effects
from core.evaluation.release.measured import Measured
from core.evaluation.statistics import ALPHA, holm, verdict

EVERY = "all questions"  # the one kind of a set whose questions have none
Column = Mapping[str, float]  # question -> value


@dataclass(frozen=True, slots=True)
class Loss:
    """The mean difference of a route from the baseline over the `n` questions of a kind that both have.

    `p_holm` is of the paired randomisation test, adjusted over all routes and kinds. `detectable`: the
    smallest true difference that would be shown four times out of five; None where the differences do not
    vary or their spread is not known. `blind`: so few questions that none could be shown, however large.
    """

    route: str
    mode: str
    n: int
    delta: float
    p_holm: float
    verdict: str
    detectable: float | None = None
    blind: bool = False


def losses(measured: Measured, metric: str) -> tuple[Loss, ...] | None:
    """Every route against the baseline in every kind of question; None where neither the questions' values
    nor figures by kind are known. A kind in which two routes share no value is left out.
    """
    values = measured.values(metric)
    found = _tested(measured, values) if values is not None else _in_words(measured, metric)
    return tuple(
        Loss(
            route,
            mode,
            one["n"],
            one["delta"],
            one["p_holm"],
            one["verdict"],
            one["detectable_holm"],
            2.0 ** (1 - one["n"]) >= ALPHA / len(found),  # the least p that so many exchanges can give
        )
        for (route, mode), one in found.items()
    ) if found is not None else None  # fmt: skip


def kinds(measured: Measured) -> dict[str, list[str]]:
    """The questions of each kind, in order of its name; all together where none has a kind."""
    modes = measured.modes
    found: dict[str, list[str]] = {mode: [] for mode in sorted(set(modes.values()))}
    for question, mode in modes.items():
        found[mode].append(question)
    if not found and measured.evaluation is not None:
        return {EVERY: list(measured.evaluation.questions)}
    return found


def paired(mine: Column, theirs: Column, within: Sequence[str] | None = None) -> dict[str, float]:
    """One route minus the other, by question, where both have a value."""
    asked = theirs if within is None else within
    return {q: mine[q] - theirs[q] for q in asked if q in mine and q in theirs}


def _tested(measured: Measured, values: Mapping[str, Column]) -> dict[tuple[str, str], dict[str, Any]]:
    others = [route for route in measured.routes if route != measured.baseline]
    base = values[measured.baseline]
    return effects.family({
        (route, mode): list(paired(values[route], base, questions).values())
        for mode, questions in kinds(measured).items()
        for route in others
    })  # fmt: skip


def _in_words(measured: Measured, metric: str) -> dict[tuple[str, str], dict[str, Any]] | None:
    """The same from the tests in the figures, as one family of this metric alone."""
    known = {
        (route, mode): told
        for mode in measured.figures["by_mode"]
        for route in measured.routes
        if (told := measured.against(route, metric, mode)) is not None and route != measured.baseline
    }
    adjusted = holm({key: float(told["p"]) for key, told in known.items()})
    return {
        key: {
            "n": int(told["n"]),
            "delta": float(told["delta"]),
            "p_holm": adjusted[key],
            "verdict": verdict(float(told["delta"]), adjusted[key]),
            "detectable_holm": effects.detectable_of(told, alpha=ALPHA / len(known)),
        }
        for key, told in known.items()
    } or None
