"""Whether generated questions put routes in the order that real ones do: Kendall's tau with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.domain.errors import BadInput

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.evaluation.experiment_store import Evaluation

DRAWS = 2000
LEAST_ROUTES, LEAST_QUESTIONS = 3, 5
Values = NDArray[np.float64]  # shape (routes, questions)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike two orders of the same routes are. `tau` is Kendall's tau-b of the routes' means: 1 the same
    order, 0 unrelated, -1 reversed; `ci95` by drawing the questions of both sides anew. `best_lost` is how
    much of the real metric is lost by shipping the route that the generated questions put first.
    """

    metric: str
    tau: float
    ci95: tuple[float, float]
    routes: tuple[str, ...]
    real: tuple[float, ...]
    generated: tuple[float, ...]
    questions: tuple[int, int]
    best: tuple[str, str]
    best_lost: float
    without_easy: float | None = None
    kinds: Mapping[str, tuple[float, int]] | None = None


def between(real: Evaluation, generated: Evaluation, metric: str) -> Agreement:
    """How the order of the routes that both evaluations measured agrees. BadInput for fewer than
    LEAST_ROUTES common routes, or fewer than LEAST_QUESTIONS questions with a label on a side.
    """
    routes = tuple(route for route in real.routes if route in generated.routes)
    if len(routes) < LEAST_ROUTES:
        raise BadInput(
            f"{real.name} and {generated.name} have {len(routes)} routes in common; {LEAST_ROUTES} or more"
            " are needed to compare orders"
        )
    first, _ = _values(real, routes, metric)
    second, ids = _values(generated, routes, metric)
    means = first.mean(axis=1), second.mean(axis=1)
    tops = tuple(routes[int(np.argmax(one))] for one in means)
    hard = [at for at, id in enumerate(ids) if not _easy(generated, id)]
    return Agreement(
        metric, tau(*means), interval(first, second), routes, tuple(means[0].tolist()),
        tuple(means[1].tolist()), (first.shape[1], second.shape[1]), (tops[0], tops[1]),
        float(means[0].max() - means[0][routes.index(tops[1])]),
        tau(means[0], second[:, hard].mean(axis=1)) if LEAST_QUESTIONS <= len(hard) < len(ids) else None,
        _by_kind(generated, means[0], second, ids),
    )  # fmt: skip


def tau(first: Values, second: Values) -> float:
    """Kendall's tau-b of two lists of scores; 0 where one of them is constant.

    Source: Kendall 1945, "The treatment of ties in ranking problems", Biometrika 33(3).
    """
    pairs = np.triu_indices(len(first), 1)
    a, b = (np.sign(one[:, None] - one[None, :])[pairs] for one in (first, second))
    scale = np.sqrt((a != 0).sum() * (b != 0).sum())
    return float((a * b).sum() / scale) if scale else 0.0


def interval(first: Values, second: Values, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of `tau` when the questions of both sides are drawn anew."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(DRAWS):
        means = [
            one[:, rng.integers(one.shape[1], size=one.shape[1])].mean(axis=1) for one in (first, second)
        ]
        found.append(tau(*means))
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def opened(settings: Settings, given: str) -> Evaluation:
    """A saved evaluation by name, or that of a folder; BadInput where there is none."""
    from core.evaluation import experiment_store

    folder = Path(given).expanduser()
    if (folder / experiment_store.LABELLED).is_file():
        return experiment_store.opened(folder)
    return experiment_store.opened(experiment_store.place(settings, given))


def _values(evaluation: Evaluation, routes: Sequence[str], metric: str) -> tuple[Values, list[str]]:
    """The metric of each route (rows) at each question (columns) that all of them answered, and their ids."""
    common = set.intersection(*(set(evaluation.values[route]) for route in routes))
    ids = [id for id in evaluation.questions if id in common]
    if len(ids) < LEAST_QUESTIONS:
        raise BadInput(
            f"{evaluation.name} has {len(ids)} labelled questions that every route answered; give"
            f" {LEAST_QUESTIONS} or more"
        )
    known = evaluation.values[routes[0]][ids[0]]
    if metric not in known:
        raise BadInput(f"unknown metric {metric!r}; known: {', '.join(known)}")
    return np.array([[evaluation.values[route][id][metric] for id in ids] for route in routes]), ids


def _easy(evaluation: Evaluation, id: str) -> bool:
    made = evaluation.questions[id].generated
    return made is not None and bool(made.checks.get("easy"))


def _by_kind(
    evaluation: Evaluation, real: Values, values: Values, ids: Sequence[str]
) -> dict[str, tuple[float, int]]:
    """Tau by the generated questions of each kind that has enough of them."""
    kinds: dict[str, list[int]] = {}
    for at, id in enumerate(ids):
        kinds.setdefault(evaluation.questions[id].mode or "", []).append(at)
    return {
        kind: (tau(real, values[:, at].mean(axis=1)), len(at))
        for kind, at in kinds.items()
        if len(at) >= LEAST_QUESTIONS
    }
