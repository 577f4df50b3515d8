"""What the order of a traffic sample saves an annotator: `python -m bench.traffic EVALUATION ...`.

In each saved evaluation one route's first ten stand for what was shown, and another route is the candidate.
Of pairs whose difference in DCG@10 is significant by all labels, a line counts the grades until the program's
interval excludes 0 in 80% of the draws; and the same for random questions of which every passage of both
lists is graded, by Student's t with the correction for a finite population.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import ttest_1samp

from core.domain import settings
from core.evaluation import experiment_store
from core.evaluation.labels.settled import SHOWN, TOP, UNGRADED, Contest
from core.evaluation.statistics import ALPHA
from core.store.labels import GRADES

Pool = dict[tuple[str, str], dict[str, int]]  # question and passage -> by list the rank, from 1
DRAWS, ENOUGH = 200, 0.8
BASELINES, CANDIDATE = ("bm25", "dense", "hybrid_linear"), "candidate"
Excludes = Callable[[int], float]  # number of grades -> share of draws whose interval excludes 0


def pairs(folder: Path) -> Iterator[tuple[Contest, Pool, NDArray[np.int64]]]:
    """Yield each pair of routes of a saved evaluation: the passages and their grades as Label gives them."""
    found = experiment_store.opened(folder)
    judged = {question: found.labelled.judged(question) for question in found.outcomes}
    highest = max(grade for grades in judged.values() for grade in grades.values())
    asked = [question for question in found.outcomes if found.labelled.labelled(question)]
    for shown, other in product(BASELINES, found.routes):
        pool: Pool = {}
        if shown == other or shown not in found.routes:
            continue
        for question, (name, route) in product(asked, {SHOWN: shown, CANDIDATE: other}.items()):
            hits = found.labelled.ranking(question, found.outcomes[question][route])
            for rank, (id, _) in enumerate(hits[:TOP], 1):
                pool.setdefault((question, id), {})[name] = rank
        grades = [judged[question].get(id, 0) * max(GRADES) // highest for question, id in pool]
        if len((contest := Contest(pool)).routes) == 2:  # a route may have found nothing
            yield contest, pool, np.array(grades)


def differences(contest: Contest, grades: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return DCG@10 of the candidate less that of what was shown [questions]."""
    one, other = (contest.discounts[:, contest.routes.index(name)] for name in (CANDIDATE, SHOWN))
    return np.bincount(contest.asked, (one - other) * grades / max(GRADES), contest.questions)


def by_passages(pool: Pool, known: NDArray[np.int64], draws: int) -> Excludes:
    """Return how often the interval excludes 0 after some grades in the order of the sample."""
    renamed = ({(f"{draw}\0{q}", id): ranks for (q, id), ranks in pool.items()} for draw in range(draws))
    drawn = [(one, np.argsort(-one.apart, kind="stable")) for one in map(Contest, renamed)]  # drawn by ids

    def excludes(count: int) -> float:
        shown = 0
        for contest, order in drawn:
            grades = np.full(len(known), UNGRADED)
            grades[order[:count]] = known[order[:count]]
            shown += any(one.shown for one in contest.beyond_shown(grades))
        return shown / draws

    return excludes


def by_questions(contest: Contest, values: NDArray[np.float64], draws: int) -> Excludes:
    """Return how often the interval excludes 0 after whole questions in a random order."""
    rng, sizes, n = np.random.default_rng(7), np.bincount(contest.asked), len(values)
    orders = [rng.permutation(n) for _ in range(draws)]

    def excludes(count: int) -> float:
        shown = 0
        for order in orders:
            k = int((sizes[order].cumsum() <= count).sum())
            if k > 1:
                some = values[order[:k]]
                error = some.std(ddof=1) / np.sqrt(k) * np.sqrt(1 - k / n)
                shown += bool(abs(some.mean()) > stdtrit(k - 1, 1 - ALPHA / 2) * error)
        return shown / draws

    return excludes


def needed(excludes: Excludes, most: int) -> int:
    """Return the least number of grades, up to `most`, with which ENOUGH of the draws exclude 0."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if excludes(middle) >= ENOUGH else (middle + 1, high)
    return low


def measured(folder: Path, draws: int = DRAWS) -> Iterator[tuple[int, int]]:
    """Yield for each pair of a saved evaluation the grades of random questions and of the sample."""
    for contest, pool, grades in pairs(folder):
        values = differences(contest, grades)
        if values.any() and ttest_1samp(values, 0).pvalue < ALPHA:
            ways = by_questions(contest, values, draws), by_passages(pool, grades, draws)
            yield needed(ways[0], len(pool)), needed(ways[1], len(pool))


def report(name: str, found: Sequence[tuple[int, int]]) -> None:
    """Print the figures of a set's pairs."""
    ratios = [sample / random for random, sample in found]
    random, sample = (median(column) for column in zip(*found, strict=True))
    sys.stdout.write(
        f"{name}: {len(found)} pairs, random {random:.0f}, sample {sample:.0f}, ratio {median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}), at most half {sum(one <= 0.5 for one in ratios)}\n"
    )
    sys.stdout.flush()


def main(names: Sequence[str]) -> None:
    """Print a line for each evaluation, and one for all."""
    every = []
    for name in names:
        folder = Path(name) if Path(name).is_dir() else experiment_store.place(settings.current(), name)
        every += (found := list(measured(folder)))
        report(folder.name, found)
    report("all", every)


if __name__ == "__main__":
    main(sys.argv[1:])
