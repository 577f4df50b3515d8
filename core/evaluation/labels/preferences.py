"""Which of two routes' results people prefer, where grades are hard: comparisons side by side.

The strengths are those of Bradley & Terry 1952, "Rank analysis of incomplete block designs". A tie, like two
results that are both bad, counts as half a win for each side, so that the chance of being preferred includes
half the ties (Davidson 1970 models ties instead, which needs a parameter more). Two further comparisons of a
route, one won and one lost, bound the strength of a route that never lost, and the intervals come from the
spread between questions: with two routes they equal the t+1 interval of core.evaluation.statistics.

Comparisons of lists that differ much come early more often, with known chances (see
core.evaluation.labels.sampling). Preferences are not grades: they enter no nDCG and no verdict.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from core.evaluation.labels.desk import Desk, routes_of
from core.evaluation.labels.draw import largest_difference
from core.evaluation.labels.route_map import rankings
from core.evaluation.labels.sampling import Floats, chances, uniform
from core.evaluation.labels.settled import contest, given
from core.evaluation.statistics import ALPHA, Interval, mean_interval
from core.store.codec import dumps
from core.store.labels import PREFERENCES, Judgement, Kind

TOP = 5  # passages of each route that are shown
CLAIMS_FROM = 10  # compared questions of two routes before one is called preferred
Routes = tuple[str, str]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matchup:
    """Two routes, by name, at a question where they show different passages. See sampling for the sizes."""

    question: str
    routes: Routes
    size: float
    key: float

    def sides(self, annotator: str) -> Routes:
        """Return the left and the right route, in random order, always the same for one annotator."""
        one, other = self.routes
        left = uniform(self.question, *self.routes, annotator) <= 1 / 2
        return (one, other) if left else (other, one)

    def judged(self, annotator: str, kind: Kind) -> Judgement:
        """Return the preference of an annotator who saw the `sides`."""
        return Judgement(self.question, dumps(self.sides(annotator)), annotator, "person", kind)


@dataclass(frozen=True, slots=True)
class RouteStrength:
    """A route's strength, as the log of its odds against the average route, and its mean chance of being
    preferred to another compared route, with a 95% interval.
    """

    route: str
    strength: float
    preferred: float
    ci95: Interval


@dataclass(frozen=True, slots=True)
class Compared:
    """Two routes: the counts of comparisons, and the chance that `route` is preferred to `other`. The
    intervals of all pairs hold together with 95%.
    """

    route: str
    other: str
    questions: int
    wins: int
    ties: int
    neither: int
    losses: int
    preferred: float
    ci95: Interval

    @property
    def claims(self) -> bool:
        """Return whether the comparisons show which of the two people prefer."""
        return self.questions >= CLAIMS_FROM and not self.ci95[0] <= 1 / 2 <= self.ci95[1]


@dataclass(frozen=True, slots=True)
class Preferences:
    """The result of the comparisons of a set. `left` is the share of decided ones in which the left side was
    preferred: one half without a position bias.
    """

    comparisons: int
    # comparisons that count nowhere: out of the drawn order, or of routes not linked to the others
    left_out: int
    routes: tuple[RouteStrength, ...]
    pairs: tuple[Compared, ...]
    left: float | None
    left_ci95: Interval | None


def matchups(desk: Desk, routes: Collection[str]) -> list[Matchup]:
    """Return every two of `routes` at every question of the pool at which they show different passages, in
    the order in which people compare them; not at questions that the documents do not answer.
    """
    found = []
    for question, ranked in rankings(desk, TOP).items():
        if desk.asked[question].answerable is False:
            continue
        for one, other in combinations(sorted(ranked.keys() & set(routes)), 2):
            if ranked[one] != ranked[other]:
                size = largest_difference(ranked[one], ranked[other])
                key = size / uniform(desk.set.name, question, one, other)
                found.append(Matchup(question, (one, other), size, key))
    return sorted(found, key=lambda one: -one.key)


def leading(desk: Desk) -> list[str]:
    """Return the routes of the pool, the best by the grades so far first."""
    found = contest(desk)
    means = found.scores(found.grades(given(desk))).sum(axis=0)
    return [found.routes[at] for at in np.argsort(-means, kind="stable")]


def preferences(desk: Desk) -> Preferences:
    """Return what people's current preferences say of the routes of a set."""
    said = [one for one in desk.held if one.kind in PREFERENCES and one.source != "model"]
    seen: dict[tuple[str, Routes], dict[str, Judgement]] = defaultdict(dict)
    for one in said:
        left, right = routes_of(one)
        seen[one.question, (min(left, right), max(left, right))][one.annotator] = one
    by_pair: dict[Routes, list[Matchup]] = defaultdict(list)
    for each in matchups(desk, {route for _, routes in seen for route in routes}):
        by_pair[each.routes].append(each)
    rows: list[tuple[str, Routes, float, float]] = []  # question, routes, the first one's wins, weight
    for routes, some in by_pair.items():
        sizes, keys = np.array([(each.size, each.key) for each in some]).T
        labelled = np.array([(each.question, routes) in seen for each in some])
        sampled, chance = chances(sizes, keys, labelled)
        for at in np.flatnonzero(sampled):
            of = seen[some[at].question, routes]
            won = float(np.mean([_won(one, routes[0]) for one in of.values()]))
            rows.append((some[at].question, routes, won, float(sampled.mean() / chance[at])))
    rows = _linked(rows)
    counted = [one for question, routes, *_ in rows for one in seen[question, routes].values()]
    decided = [PREFERENCES[one.kind] for one in said if one.kind in ("left", "right")]
    share = float(np.mean(decided)) if decided else None
    about = len(said), len(said) - len(counted)
    strengths, pairs = _fitted(rows, counted) if rows else ((), ())
    return Preferences(*about, strengths, pairs, share, mean_interval(decided))


def _won(one: Judgement, route: str) -> float:
    """Return what a preference counts for a route."""
    value = PREFERENCES[one.kind]
    return value if routes_of(one)[0] == route else 1 - value


def _linked(rows: list[tuple[str, Routes, float, float]]) -> list[tuple[str, Routes, float, float]]:
    """Return the comparisons of the largest group of routes that comparisons link."""
    groups: list[set[str]] = []
    for routes in {routes for _, routes, *_ in rows}:
        met = [group for group in groups if group & set(routes)]
        groups = [group for group in groups if group not in met] + [set(routes).union(*met)]
    most = max(groups, key=lambda group: sum(routes[0] in group for _, routes, *_ in rows), default=set())
    return [row for row in rows if row[1][0] in most]


def _fitted(
    rows: Sequence[tuple[str, Routes, float, float]], counted: Sequence[Judgement]
) -> tuple[tuple[RouteStrength, ...], tuple[Compared, ...]]:
    """Return the routes, the strongest first, and every two that were compared."""
    from scipy.special import expit, stdtrit

    names = sorted({route for _, routes, *_ in rows for route in routes})
    places = {name: at for at, name in enumerate(names)}
    numbers = {question: at for at, question in enumerate(dict.fromkeys(row[0] for row in rows))}
    pairs = np.array([[places[route] for route in routes] for _, routes, *_ in rows])
    won, weights = np.array([row[2:] for row in rows]).T
    asked = np.array([numbers[row[0]] for row in rows])
    strengths, covariance = bradley_terry(pairs, won, weights, asked)
    questions = np.array([len({*asked[(pairs == at).any(axis=1)].tolist()}) for at in range(len(names))])
    chance = expit(strengths[:, None] - strengths[None])
    slope = chance * (1 - chance)

    def interval(middle: float, gradient: Floats, fewest: int, alpha: float) -> Interval:
        half = float(stdtrit(fewest + 1, 1 - alpha / 2) * np.sqrt(gradient @ covariance @ gradient))
        return max(0.0, middle - half), min(1.0, middle + half)

    told, unit = [], np.eye(len(names))
    for at, name in enumerate(names):
        mean = float((chance[at].sum() - 1 / 2) / (len(names) - 1))
        gradient = slope[at] @ (unit[at] - unit) / (len(names) - 1)
        ends = interval(mean, gradient, int(questions[at]), ALPHA)
        told.append(RouteStrength(name, float(strengths[at]), mean, ends))
    compared, kinds = [], defaultdict[Routes, Counter[float | str]](Counter)
    for one in counted:
        left, right = routes_of(one)
        both = min(left, right), max(left, right)
        kinds[both]["neither" if one.kind == "neither" else _won(one, both[0])] += 1
    for (first, second), counts in kinds.items():
        a, b = (first, second) if strengths[places[first]] >= strengths[places[second]] else (second, first)
        i, j = places[a], places[b]
        n = int(((pairs == i).any(axis=1) & (pairs == j).any(axis=1)).sum())
        ends = interval(
            float(chance[i, j]),
            slope[i, j] * (unit[i] - unit[j]),
            int(questions[[i, j]].min()),
            ALPHA / len(kinds),
        )
        wins, losses = (counts[1.0], counts[0.0]) if a == first else (counts[0.0], counts[1.0])
        compared.append(
            Compared(a, b, n, wins, counts[0.5], counts["neither"], losses, float(chance[i, j]), ends)
        )
    return tuple(sorted(told, key=lambda one: -one.strength)), tuple(compared)


def bradley_terry(pairs: Ints, won: Floats, weights: Floats, asked: Ints) -> tuple[Floats, Floats]:
    """Return the log strengths of routes, with a mean of 0 [routes], and their covariance [routes, routes].

    `pairs` [comparisons, 2] are numbers of routes, `won` [comparisons] is what the first of them won, 0 to 1,
    and `asked` [comparisons] the number of the question: the covariance allows for like comparisons of one
    question. Each route has won and lost one further comparison, spread evenly over the others.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    count, n = int(pairs.max()) + 1, len(set(asked.tolist())) + 2
    every = np.array(list(combinations(range(count), 2)))
    more = len(every)
    pairs = np.concatenate([pairs, every, every])
    won = np.concatenate([won, np.ones(more), np.zeros(more)])
    weights = np.concatenate([weights, np.full(2 * more, 1 / (count - 1))])
    asked = np.concatenate([asked, asked.max() + 1 + np.arange(2 * more)])
    design = np.eye(count)[pairs[:, 0]] - np.eye(count)[pairs[:, 1]]

    def loss(strengths: Floats) -> tuple[float, Floats]:
        ahead = design @ strengths
        value = float(weights @ (np.logaddexp(0, ahead) - won * ahead))
        return value, design.T @ (weights * (expit(ahead) - won))

    strengths = minimize(loss, np.zeros(count), jac=True, options={"gtol": 1e-9}).x
    chance = expit(design @ strengths)
    inverse = np.linalg.pinv(design.T @ (design * (weights * chance * (1 - chance))[:, None]))
    scores = np.zeros((int(asked.max()) + 1, count))
    np.add.at(scores, asked, design * (weights * (won - chance))[:, None])
    return strengths, inverse @ scores.T @ scores @ inverse * n / (n - 1)
