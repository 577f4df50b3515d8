"""The decision whether to change the embedder: the same routes with each, on the same questions, compared
pair by pair. A threshold on cosines does not carry over, as models differ in the range of their cosines. So
for every embedder but the first, each threshold is moved to the same number of standard deviations from the
mean cosine of the first ten passages. That needs no labels, so the same questions may be asked afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from core.domain.errors import BadInput
from core.domain.models import AT
from core.evaluation import comparison
from core.evaluation.comparison import ByRoute, differences
from core.evaluation.finding import compared, figures

if TYPE_CHECKING:
    from core.domain.types import Query
    from core.engine.engine import Engine
    from core.routes.declare import Route

NEAREST = 10  # passages of each question whose cosines count
ASKED = 100  # questions at most
LEAST = 5  # questions below which nothing is moved


@dataclass(frozen=True, slots=True)
class Moved:
    """A threshold of a route with an embedder, before and after, and why."""

    route: str
    parameter: str
    before: float
    after: float
    how: str


def variants(chosen: Sequence[Route], embedders: Sequence[str]) -> list[str]:
    """Return the names of the routes with each embedder; those that use no vectors stay as they are.

    Raises BadInput for fewer than two embedders, or a route that names one already.
    """
    names = [name.strip() for name in embedders if name.strip()]
    if len(set(names)) != len(names) or len(names) < 2:
        raise BadInput("--embedders A,B needs two or more different embedders")
    if named := [route.name for route in chosen if AT in route.name]:
        raise BadInput(f"route {named[0]} names its embedder already; leave out --embedders, or the name")
    found: list[str] = []
    for route in chosen:
        found += [f"{route.name}{AT}{name}" for name in names] if route.embeds else [route.name]
    return found


def cosines(engine: Engine, corpus: str, embedder: str, questions: Sequence[Query]) -> tuple[float, float]:
    """Return the mean and standard deviation of the cosines that an embedder gives over a corpus. Raises
    Unavailable without its vectors.
    """
    opened = engine.by_embedder(engine.corpus(corpus), embedder)
    model = engine.embedder_of(opened)
    some = questions[:ASKED]
    scores = [hit.score for one in some for hit in opened.search_dense(model.embed_query(one.text), NEAREST)]
    return (float(np.mean(scores)), float(np.std(scores))) if scores else (0.0, 0.0)


def moved(engine: Engine, corpus: str, routes: Sequence[Route], questions: Sequence[Query]) -> list[Moved]:
    """Return each ROUTE@EMBEDDER's thresholds on cosines, moved from their place with the first embedder."""
    own = {route.name: route.name.partition(AT)[2] for route in routes if AT in route.name}
    first = next(iter(own.values()), "")
    measured = cache(lambda name: cosines(engine, corpus, name, questions))
    found = []
    for route in routes:
        limits, there = [one for one in route.parameters if one.cosine], own.get(route.name, first)
        if not limits or there == first:
            continue
        (mean, spread), (mean_there, spread_there) = measured(first), measured(there)
        count = min(len(questions), ASKED)
        if count < LEAST or not spread:
            continue
        for one in limits:
            after = mean_there + (one.default - mean) * spread_there / spread
            low, high = (edge if edge is not None else after for edge in (one.low, one.high))
            how = (
                f"as many standard deviations from the mean cosine of the first {NEAREST} passages of"
                f" {count} questions: {mean:.3f} ± {spread:.3f} with {first},"
                f" {mean_there:.3f} ± {spread_there:.3f} with {there}"
            )
            found.append(Moved(route.name, one.name, one.default, round(min(max(after, low), high), 4), how))
    return found


def block(values: ByRoute, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Compare each route with another embedder with the same route with the first one, in each metric.

    A metric's comparisons are a family of their own.
    """
    groups: dict[str, list[str]] = {}
    for route in (route for route in values if AT in route):
        groups.setdefault(route.partition(AT)[0], []).append(route)
    pairs = [(names[0], other) for names in groups.values() for other in names[1:]]
    tested: dict[str, Mapping[Any, Any]] = {
        metric: comparison.family({pair: differences(values, pair[1], pair[0], metric) for pair in pairs})
        for metric in metrics
    }
    return [
        {
            "route": first.partition(AT)[0],
            "from": first.partition(AT)[2],
            "to": other.partition(AT)[2],
            "metrics": {
                metric: tested[metric][first, other] for metric in metrics if (first, other) in tested[metric]
            },
        }
        for first, other in pairs
    ]


def in_words(pairs: Sequence[Mapping[str, Any]], metric: str) -> list[str]:
    """Return a line for each pair: what changing the embedder does to a route; p is over all pairs."""
    lines = []
    for pair in (pair for pair in pairs if metric in pair["metrics"]):
        found = compared(pair["metrics"][metric], pair["to"], pair["from"], metric)
        lines.append(f"{pair['route']}: {pair['to']} instead of {pair['from']}: {figures(found)}")
    return lines
