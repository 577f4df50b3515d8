"""Pairwise preferences between two routes' results, for questions whose passages are hard to grade.

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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from core.domain.format import between, number
from core.evaluation.dataset import UNDECIDED
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
    """A route's strength, as the log of its odds against the average route, with a 95% interval."""

    route: str
    strength: float
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

    def row(self, titled: Callable[[str], str] = str) -> dict[str, object]:
        """Return its line of a table by the columns' names; `titled`: the title of a route."""
        cells = asdict(self) | {"route": titled(self.route), "other": titled(self.other)}
        return cells | {"preferred": number(self.preferred), "95%": between(*cells.pop("ci95"))}


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
    the order in which people compare them; not at questions that the documents do not answer, or that ask
    for none.
    """
    found = []
    for question, ranked in rankings(desk, TOP).items():
        if desk.asked[question].answerable is False or desk.asked[question].mode in UNDECIDED:
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


def matched(one: Judgement) -> tuple[str, Routes]:
    """Return the question and the two routes, by name, of a preference."""
    left, right = sorted(routes_of(one))
    return one.question, (left, right)


def preferences(desk: Desk) -> Preferences:
    """Return what people's current preferences say of the routes of a set."""
    said = [one for one in desk.held if one.kind in PREFERENCES and one.source != "model"]
    seen: dict[tuple[str, Routes], list[Judgement]] = defaultdict(list)
    for one in said:
        seen[matched(one)].append(one)
    rows: list[tuple[str, Routes, float, float]] = []  # question, routes, the first one's wins, weight
    for routes in dict.fromkeys(routes for _, routes in seen):
        some = matchups(desk, routes)
        sizes, keys = np.array([(each.size, each.key) for each in some]).reshape(-1, 2).T
        labelled = np.array([(each.question, routes) in seen for each in some], bool)
        sampled, chance = chances(sizes, keys, labelled)
        for at in np.flatnonzero(sampled):
            won = float(np.mean([_won(one, routes[0]) for one in seen[some[at].question, routes]]))
            rows.append((some[at].question, routes, won, float(sampled.mean() / chance[at])))
    rows = _linked(rows) if rows else []
    left_out = len(said) - sum(len(seen[question, routes]) for question, routes, *_ in rows)
    decided = [PREFERENCES[one.kind] for one in said if one.kind in ("left", "right")]
    share = float(np.mean(decided)) if decided else None
    fitted = _fitted(rows, seen) if rows else ((), ())
    return Preferences(len(said), left_out, *fitted, share, mean_interval(decided))


def _won(one: Judgement, route: str) -> float:
    """Return what a preference counts for a route."""
    value = PREFERENCES[one.kind]
    return value if routes_of(one)[0] == route else 1 - value


def _places(rows: Sequence[tuple[str, Routes, float, float]]) -> tuple[list[str], Ints]:
    """Return the compared routes by name, and the numbers of those of each comparison [comparisons, 2]."""
    names, places = np.unique([routes for _, routes, *_ in rows], return_inverse=True)
    return names.tolist(), places.reshape(-1, 2)


def _linked(rows: list[tuple[str, Routes, float, float]]) -> list[tuple[str, Routes, float, float]]:
    """Return the comparisons of the largest group of routes that comparisons link."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names, pairs = _places(rows)
    links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(names), len(names)))
    groups = connected_components(links, directed=False)[1][pairs[:, 0]]
    return [rows[at] for at in np.flatnonzero(groups == np.bincount(groups).argmax())]


def _fitted(
    rows: Sequence[tuple[str, Routes, float, float]], seen: Mapping[tuple[str, Routes], Sequence[Judgement]]
) -> tuple[tuple[RouteStrength, ...], tuple[Compared, ...]]:
    """Return the routes, the strongest first, and every two that were compared."""
    from scipy.special import expit, stdtrit

    names, pairs = _places(rows)
    won, weights = np.array([row[2:] for row in rows]).T
    asked = np.unique([row[0] for row in rows], return_inverse=True)[1]
    strengths, covariance = bradley_terry(pairs, won, weights, asked)
    freedom = [len({*asked[(pairs == at).any(axis=1)].tolist()}) + 1 for at in range(len(names))]
    order, family = np.argsort(-strengths).tolist(), len({row[1] for row in rows})
    halves = stdtrit(freedom, 1 - ALPHA / 2) * np.sqrt(covariance.diagonal())
    low, high = (strengths - halves).tolist(), (strengths + halves).tolist()
    told = tuple(RouteStrength(names[at], float(strengths[at]), (low[at], high[at])) for at in order)
    compared = []
    for i, j in combinations(order, 2):
        both = names[i], names[j]
        if not (mine := [seen[row[:2]] for row in rows if {*row[1]} == {*both}]):
            continue
        kinds = Counter(one.kind if one.kind == "neither" else _won(one, both[0]) for one in chain(*mine))
        chance = float(expit(strengths[i] - strengths[j]))
        error = np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
        t = stdtrit(min(freedom[i], freedom[j]), 1 - ALPHA / family / 2)
        half = float(t * chance * (1 - chance) * error)
        counts = kinds[1.0], kinds[0.5], kinds["neither"], kinds[0.0]
        ends = max(0.0, chance - half), min(1.0, chance + half)
        compared.append(Compared(*both, len(mine), *counts, chance, ends))
    return told, tuple(compared)


def bradley_terry(pairs: Ints, won: Floats, weights: Floats, asked: Ints) -> tuple[Floats, Floats]:
    """Return the log strengths of routes, with a mean of 0 [routes], and their covariance [routes, routes].

    `pairs` [comparisons, 2] are numbers of routes, `won` [comparisons] is what the first of them won, 0 to 1,
    and `asked` [comparisons] the number of the question: the covariance allows for like comparisons of one
    question. Each route has won and lost one further comparison, spread evenly over the others.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    count, n = int(pairs.max()) + 1, len(set(asked.tolist())) + 2
    every = np.array(list(combinations(range(count), 2)) * 2)
    pairs = np.concatenate([pairs, every])
    won = np.concatenate([won, np.repeat([1.0, 0.0], len(every) // 2)])
    weights = np.concatenate([weights, np.full(len(every), 1 / (count - 1))])
    asked = np.concatenate([asked, asked.max() + 1 + np.arange(len(every))])
    design = np.eye(count)[pairs[:, 0]] - np.eye(count)[pairs[:, 1]]
    strengths = minimize(
        lambda at: weights @ (np.logaddexp(0, design @ at) - won * (design @ at)),
        np.zeros(count),
        jac=lambda at: design.T @ (weights * (expit(design @ at) - won)),
        options={"gtol": 1e-9},
    ).x
    chance = expit(design @ strengths)
    inverse = np.linalg.pinv(design.T @ (design * (weights * chance * (1 - chance))[:, None]))
    scores = np.zeros((int(asked.max()) + 1, count))
    np.add.at(scores, asked, design * (weights * (won - chance))[:, None])
    return strengths, inverse @ scores.T @ scores @ inverse * n / (n - 1)
