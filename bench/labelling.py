"""How many labels a decision needs, by the order of grading: `python -m bench.labelling NAME [QUESTIONS]`.

NAME is a saved evaluation of questions whose labels are taken as the truth. Each round draws some of its
questions, pools the first ten passages of every route, and lets an annotator grade a part of the pool; an
ungraded passage counts as not relevant. The decision (its kind, and the route that ships) is compared with
that of the whole pool, and so is the route to ship or the best so far: it may be 0.01 nDCG@10 behind the best
by the whole pool. At the end the annotator stops as the Label page proposes, or after half of the pool.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

import numpy as np

from core.domain import settings
from core.evaluation import experiment_store
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels.pool import CONTROLS, DEPTH
from core.evaluation.labels.settled import EVERY, TOLERANCE, Contest
from core.store.labels import Pair

QUESTIONS, ROUNDS, SEED = 20, 100, 7
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
SECONDS = 6.0  # a grade, for the minutes
Truth = Callable[[Pair], int]


def pooled(evaluation: Evaluation, routes: Sequence[str], questions: Sequence[str]) -> Contest:
    """Return the passages that some route has among its first ten, with their ranks."""
    pool: dict[Pair, dict[str, int]] = {}
    for question in questions:
        for route in routes:
            for at, (id, _) in enumerate(evaluation.outcomes[question][route].hits[:DEPTH], 1):
                pool.setdefault((question, id), {})[route] = at
    ms = {route: evaluation.figures["routes"][route]["p50_ms"] for route in routes}
    return Contest(pool, ms)


def uniform(contest: Contest, _truth: Truth, draw: random.Random) -> list[Pair]:
    """Return the pool in random order."""
    return draw.sample(contest.pairs, len(contest.pairs))


def move_to_front(contest: Contest, truth: Truth, draw: random.Random) -> list[Pair]:
    """Return the order of move-to-front pooling (Cormack et al. 1998): a list keeps its turn while it finds
    relevant passages; else the next one follows. Lists are those of all questions.
    """
    lists = []
    for column in contest.discounts.T:
        for question in range(contest.questions):
            found = np.flatnonzero((contest.asked == question) & (column > 0))
            lists.append([contest.pairs[at] for at in found[np.argsort(-column[found])]])
    draw.shuffle(lists)
    order: dict[Pair, None] = {}
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


def disagreement(contest: Contest, _truth: Truth, _draw: random.Random) -> list[Pair]:
    """Return the passages first whose ranks differ most between the routes."""
    return contest.order()


def main(name: str, questions: int = QUESTIONS) -> None:
    """Print, for each order and share of the pool, how often the decision is that of the whole pool."""
    evaluation = experiment_store.opened(experiment_store.place(settings.current(), name))
    routes = [one for one in evaluation.routes if one not in CONTROLS]
    qrels = evaluation.labelled.qrels
    asked = [q for q in evaluation.outcomes if evaluation.labelled.labelled(q)]
    draw = random.Random(SEED)
    same = {(order.__name__, share): [0, 0] for order in ORDERS for share in SHARES}
    sizes, stops, stopped = [], [], [0, 0]

    def truth(place: Pair) -> int:
        return qrels[place[0]].get(place[1], 0)

    for _ in range(ROUNDS):
        contest = pooled(evaluation, routes, draw.sample(asked, min(questions, len(asked))))
        every = {one: truth(one) for one in contest.pairs}
        sizes.append(len(every))
        whole, means = contest.standing(contest.grades(every)), contest.scores(contest.grades(every)).mean(0)

        def agrees(given: Sequence[Pair]) -> tuple[bool, bool]:
            """Compare the decision, and the route, by some of the grades with those by all."""
            found = contest.standing(contest.grades({one: every[one] for one in given}))  # noqa: B023
            ships = whole.kind in ("ship", "equivalent")  # noqa: B023
            decided = found.kind == whole.kind and (not ships or found.route == whole.route)  # noqa: B023
            if found.route is None:
                return decided, False
            behind = means.max() - means[contest.routes.index(found.route)]  # noqa: B023
            return decided, bool(behind <= TOLERANCE)

        for order in ORDERS:
            pairs = order(contest, truth, draw)
            for share in SHARES:
                for at, one in enumerate(agrees(pairs[: round(share * len(pairs))])):
                    same[order.__name__, share][at] += one
        pairs = contest.order()
        given = 0
        while given < len(pairs) / 2:
            given = min(given + EVERY, len(pairs))
            if contest.settled(contest.grades({one: every[one] for one in pairs[:given]})):
                break
        stops.append(given)
        for at, one in enumerate(agrees(pairs[:given])):
            stopped[at] += one
    size, stop = sum(sizes) / ROUNDS, sum(stops) / ROUNDS
    lines = [
        f"{name}: {questions} questions, {size:.0f} passages, {size * SECONDS / 60:.0f} minutes, "
        f"{ROUNDS} rounds; decision / route within {TOLERANCE}"
    ]
    for order in ORDERS:
        cells = (
            f"{share:.0%}: " + "/".join(f"{one / ROUNDS:.0%}" for one in same[order.__name__, share])
            for share in SHARES
        )
        lines.append(f"{order.__name__:14} {' '.join(cells)}")
    shares = "/".join(f"{one / ROUNDS:.0%}" for one in stopped)
    lines.append(f"early stop     {stop:.0f} passages, {stop * SECONDS / 60:.0f} minutes: {shares}")
    sys.stdout.writelines(f"{line}\n" for line in lines)


ORDERS = (uniform, move_to_front, disagreement)

if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
