"""The similarity of the rankings of a run's routes, and the passages that only one route finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.analysis.run_view import title_of, worked
from core.domain.outputs import Search
from core.domain.rank_changes import ranks
from core.domain.types import RouteResult, Run

Measure = Literal["jaccard", "rbo"]
PERSISTENCE = 0.9  # of RBO: the first 10 ranks decide 86 % (Webber, Moffat & Zobel 2010, equation 21)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Similarity of each two routes, 0 to 1, shape (n, n), with similar routes next to each other. `empty`
    are the routes that found nothing, which are not compared.
    """

    routes: tuple[str, ...]
    values: NDArray[np.float64]
    empty: tuple[str, ...] = ()

    def pairs(self) -> list[tuple[str, str, float]]:
        """Return each pair of routes with its similarity, the most similar first, ties in the order of
        routes.
        """
        found = [
            (self.routes[a], self.routes[b], float(self.values[a, b]))
            for a in range(len(self.routes))
            for b in range(a)
        ]
        return sorted(found, key=lambda pair: -pair[2])


def jaccard(one: Sequence[str], other: Sequence[str], depth: int) -> float:
    """Return the passages in both top `depth` over the passages in either; 0 if both are empty."""
    a, b = set(one[:depth]), set(other[:depth])
    return len(a & b) / len(a | b) if a or b else 0.0


def mean_overlaps(
    rankings: Iterable[Mapping[str, Sequence[str]]], depth: int
) -> tuple[list[str], NDArray[np.float64]]:
    """Return the routes of any question's `rankings` by name, and the mean Jaccard index of each two of them
    over all questions, shape (n, n); 1 with itself.
    """
    every = list(rankings)
    routes = sorted({route for by in every for route in by})
    alike = np.eye(len(routes))
    for a, b in combinations(range(len(routes)), 2):
        one, other = routes[a], routes[b]
        values = [jaccard(by.get(one, ()), by.get(other, ()), depth) for by in every]
        alike[a, b] = alike[b, a] = sum(values) / len(values)
    return routes, alike


def rbo(one: Sequence[str], other: Sequence[str], p: float) -> float:
    """Extrapolated rank-biased overlap of two rankings without ties or repeats, of any lengths: 0 to 1.

    `p` is the persistence: the nearer to 1, the deeper ranks count. 0 where a ranking is empty.
    Source: Webber, Moffat & Zobel 2010, "A Similarity Measure for Indefinite Rankings", equation 32.
    """
    if not 0 < p < 1:
        raise ValueError(f"p={p!r}; rank-biased overlap takes a persistence between 0 and 1")
    short, long = sorted((one, other), key=len)
    if len({*short}) < len(short) or len({*long}) < len(long):
        raise ValueError("a ranking names an item twice")
    if not short:
        return 0.0
    s, l = len(short), len(long)  # noqa: E741 - the paper's letters
    common = _common(short, long)
    x_s, x_l = common[s - 1], common[l - 1]
    total = sum(x / d * p**d for d, x in enumerate(common, 1))
    total += sum(x_s * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * total + ((x_l - x_s) / l + x_s / s) * p**l


def overlap(run: Run, measure: Measure, *, depth: int = 10) -> Overlap:
    """Compare the routes that found something: their top `depth` by Jaccard, or whole rankings by RBO."""
    found = {result.route: list(ranks(result.hits)) for result in worked(run)}
    lists = {route: ids for route, ids in found.items() if ids}
    names = list(lists)
    values = np.eye(len(names))
    for a, one in enumerate(names):
        for b, other in enumerate(names[:a]):
            alike = (
                jaccard(lists[one], lists[other], depth)
                if measure == "jaccard"
                else rbo(lists[one], lists[other], PERSISTENCE)
            )
            values[a, b] = values[b, a] = alike
    order = similarity_order(values)
    empty = tuple(route for route, ids in found.items() if not ids)
    return Overlap(tuple(names[at] for at in order), values[np.ix_(order, order)], empty)


def similarity_order(values: NDArray[np.float64]) -> list[int]:
    """Return an order in which like ones are neighbours: the leaves of average linkage over 1 - likeness,
    turned so that neighbours are as alike as the tree allows (Bar-Joseph et al. 2001, as in scipy).
    """
    if len(values) < 3:
        return list(range(len(values)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    apart = squareform(np.clip(1 - values, 0, 1), checks=False)
    tree = linkage(apart, "average", optimal_ordering=True)
    return [int(at) for at in leaves_list(tree)]


def alone(run: Run, depth: int) -> dict[str, list[str]]:
    """Return by route the passages of its top `depth` that no other route has in its own, best first."""
    tops = {result.route: list(ranks(result.hits))[:depth] for result in worked(run)}
    having = Counter(id for ids in tops.values() for id in ids)
    return {route: [id for id in ids if having[id] == 1] for route, ids in tops.items()}


def _common(short: Sequence[str], long: Sequence[str]) -> list[int]:
    """Return how many items the first d of both have in common, for each depth d of the longer."""
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    found, count = [], 0
    for d, item in enumerate(long):
        seen_long.add(item)
        count += item in seen_short
        if d < len(short):
            seen_short.add(short[d])
            count += short[d] in seen_long
        found.append(count)
    return found


@dataclass(frozen=True, slots=True)
class RankRow:
    """A passage: its id, its name, its gold grade (0 without a label), and its rank in each route with a
    result, in the routes' order; None if a route does not have it.
    """

    id: str
    name: str
    grade: int
    ranks: tuple[int | None, ...]


def contenders(run: Run, *, depth: int, limit: int) -> list[str]:
    """Return the passages in any route's top `depth`, best first by the sum of reciprocal ranks, at most
    `limit`.
    """
    worth: dict[str, float] = {}
    for result in worked(run):
        for id, rank in ranks(result.hits).items():
            if rank <= depth:
                worth[id] = worth.get(id, 0.0) + 1 / rank
    return sorted(worth, key=lambda id: (-worth[id], id))[:limit]


def rank_rows(
    run: Run, *, depth: int, limit: int = 40, gold: Mapping[str, int] | None = None, lit: str | None = None
) -> list[RankRow]:
    """Return the `contenders` with their ranks; a passage `lit` that is not among them gets the last row."""
    ids = contenders(run, depth=depth, limit=limit)
    if lit is not None and lit not in ids:
        ids = [*ids[: limit - 1], lit]
    tables = [ranks(result.hits) for result in worked(run)]
    grades = gold or {}
    return [
        RankRow(id, title_of(run, id), grades.get(id, 0), tuple(table.get(id) for table in tables))
        for id in ids
    ]


def strength(rank: int, depth: int) -> float:
    """Return 1 for the first rank, 0.25 for the last of the top `depth`, 0 below it."""
    if rank > depth:
        return 0.0
    return 1.0 - 0.75 * (rank - 1) / max(1, depth - 1)


TOP = 10  # hits that are looked at
WORDS, VECTORS = ("BM25", "full text", "term weights"), ("vectors",)  # in the names of search steps


@dataclass(frozen=True, slots=True)
class Halves:
    """Counts of a route's first hits by the searches that found them."""

    hits: int
    words: int  # found by words alone
    vectors: int  # found by vectors alone
    both: int

    def line(self) -> str:
        """Say it in a sentence."""
        return (
            f"Of the first {self.hits} hits {self.vectors} were found by vectors alone, {self.words} by words"
            f" alone, {self.both} by both"
        )


def halves(result: RouteResult, top: int = TOP) -> Halves | None:
    """Count which searches found the first `top` hits; None if the route does not search in both ways."""
    searches = [span for span in result.spans if isinstance(span.output, Search)]
    kinds = ([span for span in searches if any(name in span.name for name in of)] for of in (WORDS, VECTORS))
    found = [{id for span in some for id, _ in span.hits or ()} for some in kinds if some]
    ids = [hit.passage.id for hit in result.hits[:top]]
    if len(found) < 2 or not ids:
        return None
    by_words, by_vectors = found
    words = sum(id in by_words and id not in by_vectors for id in ids)
    vectors = sum(id in by_vectors and id not in by_words for id in ids)
    return Halves(len(ids), words, vectors, sum(id in by_words and id in by_vectors for id in ids))
