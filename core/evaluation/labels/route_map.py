"""Agreement of routes without labels, from a label set's pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan

from core.analysis.rank_overlap import mean_overlaps
from core.corpus.corpus import Corpus
from core.evaluation import verdict
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import labelled_set
from core.evaluation.outcome import Outcome
from core.evaluation.scoring import route_values
from core.evaluation.verdict import Verdict
from core.store import Store

TOP = 10  # passages of each ranking that are compared
ALIKE = 0.6  # mean overlap from which routes are one group
METRIC = "ndcg@10"
Rankings = Mapping[str, Mapping[str, tuple[str, ...]]]  # question -> route -> passages, best first


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """Routes that show nearly the same passages; `overlap` is their mean Jaccard index, 1 for one alone."""

    routes: tuple[str, ...]
    overlap: float


def rankings(desk: Desk, depth: int = TOP) -> Rankings:
    """Return what each route showed first at each question, as its pool recorded it."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for question, pool in desk.pool.items():
        ranked: dict[str, list[tuple[int, str]]] = {}
        for id, pooled in pool.items():
            for route, rank in pooled.found:
                if rank <= depth:
                    ranked.setdefault(route, []).append((rank, id))
        found[question] = {route: tuple(id for _, id in sorted(some)) for route, some in ranked.items()}
    return {question: by for question, by in found.items() if by}


def groups(found: Rankings, least: float = ALIKE) -> list[RouteGroup]:
    """Return the routes in groups whose mean overlap is at least `least`, by average linkage (Sokal and
    Michener 1958), the largest first.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    routes, alike = mean_overlaps(found.values(), TOP)
    if len(routes) < 2:
        return [RouteGroup((route,), 1.0) for route in routes]
    tree = linkage(squareform(1 - alike, checks=False), "average")
    made: dict[int, list[int]] = {}
    for at, name in enumerate(fcluster(tree, 1 - least + 1e-9, "distance")):
        made.setdefault(int(name), []).append(at)
    found_groups = []
    for some in made.values():
        pairs = [float(alike[a, b]) for a, b in combinations(some, 2)]
        overlap = sum(pairs) / len(pairs) if pairs else 1.0
        found_groups.append(RouteGroup(tuple(routes[at] for at in some), overlap))
    return sorted(found_groups, key=lambda group: (-len(group.routes), group.routes))


def decision(
    store: Store, name: str, corpus: Corpus, found: Rankings, named: Callable[[str], str] = str
) -> Verdict:
    """Return which route the grades given so far can show to be the one to ship, by the rule of
    `core.evaluation.verdict`. Raises BadInput if nothing is graded.
    """
    labelled = labelled_set(store, name, corpus)[0]
    routes: Sequence[str] = sorted({route for by in found.values() for route in by})
    outcomes = {
        question: {
            route: Outcome("ok", nan, tuple((id, 1 / at) for at, id in enumerate(by.get(route, ()), 1)))
            for route in routes
        }
        for question, by in found.items()
    }
    values = {
        route: {
            question: float(measured[METRIC])
            for question, measured in route_values(labelled, outcomes, route, metrics=(METRIC,)).items()
        }
        for route in routes
    }
    return verdict.plain(values, outcomes, routes[0], {}, {}, named)
