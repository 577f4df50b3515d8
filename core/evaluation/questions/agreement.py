"""The agreement of generated and real questions on the order of routes: Kendall's tau and its ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.domain.errors import BadInput
from core.evaluation.statistics import ALPHA, ROUNDING, Interval

if TYPE_CHECKING:
    from core.evaluation.experiment_store import Evaluation

DRAWS = 2000
LEAST_ROUTES, LEAST_QUESTIONS = 3, 5
Values = NDArray[np.float64]  # shape (routes, questions)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The likeness of two orders of the same routes. `best_lost` is how much of the real metric is lost by
    shipping the route that the generated questions put first.
    """

    metric: str
    # Kendall's tau-b of the routes' means: 1 the same order, 0 unrelated, -1 reversed.
    tau: float
    ci95: Interval
    # What so few questions can show at most: the 5% point and the median of tau between random re-splits of
    # all questions of both sides.
    ceiling: Interval
    # Whether the sets are shown to order the routes differently (see likeness).
    disagree: bool
    routes: tuple[str, ...]
    real: tuple[float, ...]
    generated: tuple[float, ...]
    questions: tuple[int, int]
    best: tuple[str, str]
    best_lost: float
    without_easy: float | None = None
    kinds: Mapping[str, tuple[float, int]] | None = None


def between(real: Evaluation, generated: Evaluation, metric: str) -> Agreement:
    """Compare the orders of the routes that both evaluations measured. Raises BadInput for fewer than
    LEAST_ROUTES common routes, or fewer than LEAST_QUESTIONS questions with a label on a side.
    """
    routes = tuple(route for route in real.routes if route in generated.routes)
    if len(routes) < LEAST_ROUTES:
        names = f"{real.name} and {generated.name}"
        raise BadInput(f"{names} have {len(routes)} routes in common; {LEAST_ROUTES} are needed")
    first, _ = _values(real, routes, metric)
    second, ids = _values(generated, routes, metric)
    means = first.mean(axis=1), second.mean(axis=1)
    tops = tuple(routes[int(np.argmax(one))] for one in means)
    ends, ceiling, disagree = likeness(first, second)
    kinds: dict[str, list[int]] = {}
    for at, id in enumerate(ids):
        kinds.setdefault(generated.questions[id].mode or "", []).append(at)
    made = [generated.questions[id].generated for id in ids]
    hard = [at for at, one in enumerate(made) if one is None or not one.checks.get("easy")]
    return Agreement(
        metric,
        tau(*means),
        ends,
        ceiling,
        disagree,
        routes,
        tuple(means[0].tolist()),
        tuple(means[1].tolist()),
        (first.shape[1], second.shape[1]),
        (tops[0], tops[1]),
        float(means[0].max() - means[0][routes.index(tops[1])]),
        tau(means[0], second[:, hard].mean(axis=1)) if LEAST_QUESTIONS <= len(hard) < len(ids) else None,
        {
            kind: (tau(means[0], second[:, at].mean(axis=1)), len(at))
            for kind, at in kinds.items()
            if len(at) >= LEAST_QUESTIONS
        },
    )


def tau(first: Values, second: Values) -> float:
    """Return Kendall's tau-b of two lists of scores; 0 if one of them is constant.

    Source: Kendall 1945, "The treatment of ties in ranking problems", Biometrika 33(3).
    """
    return float(_taus(first[:, None], second[:, None])[0])


def likeness(first: Values, second: Values, seed: int = 0) -> tuple[Interval, Interval, bool]:
    """Return a 95% interval of tau, its ceiling, and whether the two sets disagree (see Agreement). Two sets
    of so few questions do not show the same order even if they ask the same. They disagree if tau is below
    the 5% point of random re-splits of all questions into sets of the same sizes (a permutation test: Fisher
    1935); or if the questions drawn again show a reversed order in 97.5% of draws, as re-splits of two
    reversed orders show no order at all. The interval goes from the lower end of the percentile and the basic
    bootstrap interval to the higher end, as neither alone covers (Davison & Hinkley 1997, chapter 5). Its
    upper end is 1 unless the sets disagree: drawing questions again only adds disagreement.
    """
    rng = np.random.default_rng(seed)
    measured = tau(first.mean(axis=1), second.mean(axis=1))
    pooled, size = np.concatenate([first, second], axis=1), first.shape[1]
    split = rng.permuted(np.tile(np.arange(pooled.shape[1]), (DRAWS, 1)), axis=1)
    found = _taus(_means(pooled, split[:, :size]), _means(pooled, split[:, size:]))
    as_low = (int((found <= measured + ROUNDING).sum()) + 1) / (DRAWS + 1)
    ceiling = float(np.quantile(found, 0.05)), float(np.median(found))
    drawn = _taus(
        *(_means(one, rng.integers(one.shape[1], size=(DRAWS, one.shape[1]))) for one in (first, second))
    )
    low, high = (float(end) for end in np.quantile(drawn, (0.025, 0.975)))
    disagree = as_low < ALPHA or high < 0
    low, high = min(low, 2 * measured - high), max(high, 2 * measured - low)
    return (max(-1.0, low), min(1.0, high) if disagree else 1.0), ceiling, disagree


def _means(values: Values, drawn: NDArray[np.int64]) -> Values:
    """Return the means over drawn questions, shape (routes, draws)."""
    rows = [np.bincount(row, minlength=values.shape[1]) for row in drawn]
    return np.asarray(np.round(values @ np.stack(rows, axis=1) / drawn.shape[1], 12))


def _taus(first: Values, second: Values) -> Values:
    """Return tau-b of each column of two arrays of shape (routes, draws)."""
    one, other = np.triu_indices(len(first), 1)
    a, b = (np.sign(means[one] - means[other]) for means in (first, second))
    scale = np.sqrt((a != 0).sum(axis=0) * (b != 0).sum(axis=0))
    return np.asarray(np.divide((a * b).sum(axis=0), scale, out=np.zeros(len(scale)), where=scale > 0))


def _values(evaluation: Evaluation, routes: Sequence[str], metric: str) -> tuple[Values, list[str]]:
    """Return the metric of each route (rows) at each question (columns) that all of them answered, and their
    ids.
    """
    common = set.intersection(*(set(evaluation.values[route]) for route in routes))
    ids = [id for id in evaluation.questions if id in common]
    if len(ids) < LEAST_QUESTIONS:
        few = f"{len(ids)} labelled questions that every route answered"
        raise BadInput(f"{evaluation.name} has {few}; give {LEAST_QUESTIONS} or more")
    known = evaluation.values[routes[0]][ids[0]]
    if metric not in known:
        raise BadInput(f"unknown metric {metric!r}; known: {', '.join(known)}")
    return np.array([[evaluation.values[route][id][metric] for id in ids] for route in routes]), ids
