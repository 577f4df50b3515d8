"""How many labels a decision needs, by the order of grading: `python -m bench.labelling NAME`.

NAME is a saved evaluation of questions whose labels are taken as the truth. Each round draws some of its
questions, pools the first ten passages of every route, and lets an annotator grade a part of the pool; an
ungraded passage counts as not relevant. The decision (its kind, and the route to ship or the best so far) is
compared with that of the whole pool.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from math import log2

from core.domain import settings
from core.evaluation import experiment_store
from core.evaluation.comparison import Difference, pair
from core.evaluation.costs import Cost
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels.pool import CONTROLS, DEPTH
from core.evaluation.labels.queue import spread
from core.evaluation.verdict import Option
from core.evaluation.verdict import decide as decide_by_pairs

QUESTIONS, ROUNDS, SEED = 20, 100, 7
SHARES = (0.1, 0.2, 0.3, 0.4, 0.6)
SECONDS = 6.0  # a grade, for the minutes
Ranks = Mapping[str, Mapping[str, int]]  # passage -> route -> rank
Pool = Mapping[str, Ranks]  # question -> its ranks
Place = tuple[str, str]  # question and passage


def pooled(evaluation: Evaluation, routes: Sequence[str], question: str) -> Ranks:
    """Return the ranks of the passages that some route has among its first ten."""
    ranks: dict[str, dict[str, int]] = {}
    for route in routes:
        for at, (id, _) in enumerate(evaluation.outcomes[question][route].hits[:DEPTH], 1):
            ranks.setdefault(id, {})[route] = at
    return ranks


def uniform(
    pool: Pool, _routes: Sequence[str], _truth: Callable[[Place], int], draw: random.Random
) -> list[Place]:
    """Return the pool in random order."""
    pairs = [(question, id) for question, ranks in pool.items() for id in ranks]
    draw.shuffle(pairs)
    return pairs


def move_to_front(
    pool: Pool, routes: Sequence[str], truth: Callable[[Place], int], draw: random.Random
) -> list[Place]:
    """Return the order of move-to-front pooling (Cormack et al. 1998): a list keeps its turn while it finds
    relevant passages; else the next one follows. Lists are those of all questions.
    """
    lists = [
        [
            (question, id)
            for id in sorted(ranks, key=lambda id: ranks[id].get(route, 99))
            if route in ranks[id]
        ]
        for question, ranks in pool.items()
        for route in routes
    ]
    draw.shuffle(lists)
    order: dict[Place, None] = {}
    while lists:
        one = lists.pop(0)
        while one:
            place = one.pop(0)
            if place not in order:
                order[place] = None
                if not truth(place):
                    lists.append(one)
                    break
    return list(order)


def disagreement(
    pool: Pool, routes: Sequence[str], _truth: Callable[[Place], int], _draw: random.Random
) -> list[Place]:
    """Return the passages first whose ranks differ most between the routes."""
    weights = {(q, id): spread(by, routes) for q, ranks in pool.items() for id, by in ranks.items()}
    return sorted(weights, key=lambda pair: -weights[pair])


def decide(
    evaluation: Evaluation,
    routes: Sequence[str],
    pool: Pool,
    truth: Callable[[Place], int],
    graded: set[Place],
) -> tuple[str, str | None]:
    """Return the decision's kind and route by the graded passages alone."""
    values: dict[str, dict[str, float]] = {route: {} for route in routes}
    for question, ranks in pool.items():
        grades = {id: truth((question, id)) for id in ranks if (question, id) in graded}
        ideal = sorted(grades.values(), reverse=True)[:DEPTH]
        best = sum(grade / log2(at + 1) for at, grade in enumerate(ideal, 1))
        if not best:
            continue
        for route in routes:
            found = sum(
                grade / log2(ranks[id][route] + 1) for id, grade in grades.items() if route in ranks[id]
            )
            values[route][question] = found / best
    options = [
        Option(
            route,
            sum(column.values()) / len(column) if column else None,
            len(column),
            "passes",
            Cost(None, None, evaluation.figures["routes"][route]["p50_ms"]),
        )
        for route, column in values.items()
    ]

    def compared(route: str, other: str) -> Difference | None:
        mine, theirs = values[route], values[other]
        return pair(route, other, [mine[q] - theirs[q] for q in mine if q in theirs])

    verdict = decide_by_pairs(options, compared)
    best_so_far = verdict.best_so_far
    return verdict.decision, verdict.chosen or (best_so_far.route if best_so_far else None)


def main(name: str) -> None:
    """Print, for each order and share of the pool, how often the decision is that of the whole pool."""
    evaluation = experiment_store.opened(experiment_store.place(settings.current(), name))
    routes = [one for one in evaluation.routes if one not in CONTROLS]
    qrels = evaluation.labelled.qrels
    asked = [q for q in evaluation.outcomes if evaluation.labelled.labelled(q)]
    draw = random.Random(SEED)
    same = {(order.__name__, share): 0 for order in ORDERS for share in SHARES}
    sizes = []

    def truth(place: Place) -> int:
        return qrels[place[0]].get(place[1], 0)

    for _ in range(ROUNDS):
        pool = {q: pooled(evaluation, routes, q) for q in draw.sample(asked, min(QUESTIONS, len(asked)))}
        every = {(q, id) for q, ranks in pool.items() for id in ranks}
        sizes.append(len(every))
        whole = decide(evaluation, routes, pool, truth, every)
        for order in ORDERS:
            pairs = order(pool, routes, truth, draw)
            for share in SHARES:
                graded = set(pairs[: round(share * len(pairs))])
                same[order.__name__, share] += decide(evaluation, routes, pool, truth, graded) == whole
    size = sum(sizes) / len(sizes)
    minutes = size * SECONDS / 60
    lines = [f"{name}: {QUESTIONS} questions, {size:.0f} passages, {minutes:.0f} minutes, {ROUNDS} rounds"]
    for order in ORDERS:
        cells = (f"{share:.0%}: {same[order.__name__, share] / ROUNDS:.0%}" for share in SHARES)
        lines.append(f"{order.__name__:14} {' '.join(cells)}")
    sys.stdout.writelines(f"{line}\n" for line in lines)


ORDERS = (uniform, move_to_front, disagreement)

if __name__ == "__main__":
    main(sys.argv[1])
