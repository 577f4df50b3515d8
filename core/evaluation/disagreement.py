"""On which questions routes differ: in a metric, and in what they show first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from core.analysis.rank_overlap import jaccard
from core.evaluation.comparison import ByRoute, by_question
from core.evaluation.effects import SAME

TOP = 10  # passages compared of each ranking


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The difference between routes on one question. `spread`: the best value of a metric minus the worst,
    None if fewer than two routes were scored. `apart`: 1 minus the mean Jaccard index of the first 10
    passages over all pairs of routes that ended well, 0 (the same passages) to 1 (none in common), None with
    fewer than two. `best`, `worst`: the routes at the extremes.
    """

    question: str
    spread: float | None
    apart: float | None
    best: tuple[str, ...] = ()
    worst: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """Questions with a route's value minus the baseline's; the largest change first, ties by question."""

    improved: tuple[tuple[str, float], ...]
    worse: tuple[tuple[str, float], ...]
    same: tuple[str, ...]

    @property
    def n(self) -> int:
        """Return the number of questions."""
        return len(self.improved) + len(self.worse) + len(self.same)


def disagreements(
    values: ByRoute, metric: str, rankings: Mapping[str, Mapping[str, Sequence[str]]], *, depth: int = TOP
) -> list[Disagreement]:
    """Every question of `values` or `rankings`, the widest spread first, then the farthest apart.

    `rankings`: question -> route -> passage ids, of the routes that ended well; two empty ones are alike.
    """
    questions = dict.fromkeys([*(q for by in values.values() for q in by), *rankings])
    found = [_one(question, values, metric, rankings.get(question, {}), depth) for question in questions]
    return sorted(found, key=lambda one: (-(one.spread or 0.0), -(one.apart or 0.0)))


def moved(values: ByRoute, route: str, baseline: str, metric: str) -> Moved:
    """Return the questions on which `route` is better than `baseline`, worse, and the same, if both were
    scored.
    """
    by = by_question(values, route, baseline, metric)
    return Moved(
        tuple(sorted(((q, d) for q, d in by.items() if d > SAME), key=lambda one: (-one[1], one[0]))),
        tuple(sorted(((q, d) for q, d in by.items() if d < -SAME), key=lambda one: (one[1], one[0]))),
        tuple(q for q, d in by.items() if abs(d) <= SAME),
    )


def _one(
    question: str, values: ByRoute, metric: str, lists: Mapping[str, Sequence[str]], depth: int
) -> Disagreement:
    scored = {
        route: value
        for route, by in values.items()
        if question in by and (value := by[question].get(metric)) is not None
    }
    top, low = max(scored.values(), default=0.0), min(scored.values(), default=0.0)
    pairs = list(combinations([ids[:depth] for ids in lists.values()], 2))
    likeness = [jaccard(one, other, depth) if one or other else 1.0 for one, other in pairs]
    return Disagreement(
        question,
        top - low if len(scored) > 1 else None,
        1 - sum(likeness) / len(likeness) if likeness else None,
        tuple(route for route, value in scored.items() if value == top),
        tuple(route for route, value in scored.items() if value == low),
    )
