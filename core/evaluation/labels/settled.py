"""Grade first what separates the routes, stop when more grades would change nothing, and ask a second person
where another grade would change the decision.

Missing grades are drawn at random 20 times: a passage is relevant as often as graded passages at
like ranks are. The decision is settled if at least 19 completions leave its kind, and leave its route within
0.01 nDCG@10 of the best.

Passages of traffic (of a pool with what was shown) come in a random order that favours decisive ones (see
core.evaluation.labels.sampling), so that a mean over all of the pool follows with an interval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log2, sqrt

import numpy as np
import numpy.typing as npt

from core.evaluation.comparison import Difference, from_summary
from core.evaluation.costs import Cost
from core.evaluation.finding import Finding
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import final
from core.evaluation.labels.sampling import chances, uniform
from core.evaluation.statistics import ALPHA, excluded
from core.evaluation.verdict import MIN_QUESTIONS, Kind, Option, decide
from core.store.labels import GRADES, Pair

COMPLETIONS, AGREEING = 20, 19
MOST_FLIPPED = 300  # grades whose opposite is tried, in about a second
TOLERANCE = 0.01  # nDCG by which the route may be behind the best of a completion
LEAST = 40  # grades before the share of relevant passages is known well enough to ask
EVERY = 20  # grades from one check to the next
BANDWIDTH = 0.1  # of the kernel over the mean discount of a passage: between ranks 5 and 10 of every route
PRIOR = 2.0  # graded passages that the assumed share counts as
TOP = 10
UNGRADED = -1
SHOWN = "shown"  # the route in a pool that stands for what another program showed
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ranks = Mapping[str, int]  # route -> the rank, from 1, at which it found a passage


@dataclass(frozen=True, slots=True)
class Standing:
    """The decision by the grades so far; an ungraded passage counts as not relevant."""

    kind: Kind
    # to ship, or the best so far; None without a relevant passage
    route: str | None


class Contest:
    """Compare routes by the passages of a pool. Arrays: `discounts` of DCG [passages, routes], 0 where a
    route did not find the passage; `asked` [passages], the number of the passage's question.
    """

    def __init__(
        self,
        pool: Mapping[Pair, Ranks],
        ms: Mapping[str, float | None] | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.pairs = tuple(pool)
        self.routes = sorted({route for ranks in pool.values() for route in ranks})
        self.discounts: Floats = np.array(
            [[1 / log2(at[one] + 1) if one in at else 0.0 for one in self.routes] for at in pool.values()]
        ).reshape(len(pool), len(self.routes))
        numbers = {id: at for at, id in enumerate(dict.fromkeys(id for id, _ in pool))}
        self.asked: Ints = np.array([numbers[id] for id, _ in pool], dtype=np.int64)
        self.questions = len(numbers)
        self._ms = ms or {}
        self._counts: Ints = np.array([(counts or {}).get(id, 1) for id in numbers], dtype=np.int64)
        self.apart: Floats = self.discounts.std(axis=1) if self.routes else np.zeros(len(self.pairs))
        if SHOWN in self.routes:
            ranks = 2 ** (1 / np.where(self.discounts > 0, self.discounts, 1)) - 1
            likely = np.sqrt(((self.discounts > 0) / ranks).sum(axis=1))  # relevant, by rank
            self._sizes = self.apart * likely * self._counts[self.asked]
            self.apart = self._sizes / np.array([uniform(*pair) for pair in self.pairs])

    def order(self) -> list[Pair]:
        """Return the passages, those first whose grade separates the routes most: by the standard deviation
        of the discounts over the routes; of traffic as the module says.
        """
        return [self.pairs[at] for at in np.argsort(-self.apart, kind="stable")]

    def beyond_shown(self, grades: Ints) -> list[Finding]:
        """Return each route's DCG@10 less that of what was shown, in the mean over the traffic of the pool,
        estimated from the passages graded in `order`; [] without any. A passage of the highest grade has
        gain 1.
        """
        from scipy.special import stdtrit

        known, matters, total = grades >= 0, self.apart > 0, self._counts.sum()
        sample, share = chances(self._sizes, self.apart, known)
        share = share[sample]
        n, candidates = int(sample.sum()), [one for one in self.routes if one != SHOWN]
        found = []
        for name in candidates if n else ():
            change = self.discounts[:, self.routes.index(name)] - self.discounts[:, self.routes.index(SHOWN)]
            change = change * self._counts[self.asked]
            most, terms = change[sample] / share, (change * grades)[sample] / share / max(GRADES)
            # Two passages more, of a usual weight, keep a few grades from looking certain.
            usual = float(np.abs(most[share < 1]).mean()) if (share < 1).any() else 0.0
            error = sqrt(float((terms**2 * (1 - share)).sum()) + 2 * usual**2 * (1 - n / matters.sum()))
            width = -float(stdtrit((terms != 0).sum() + 1, ALPHA / len(candidates) / 2)) * error
            # Whatever the grades to come, the difference stays within these.
            sure, rest = float((change * grades)[known].sum()) / max(GRADES), change[~known]
            ends = (sure + float(rest[rest < 0].sum()), sure + float(rest[rest > 0].sum()))
            guess = float(terms.sum())
            low, mean, high = (np.clip([guess - width, guess, guess + width], *ends) / total).tolist()
            between, verdict = (low, high), excluded((low, high))
            found.append(Finding(name, "DCG@10", mean, between, None, n, None, SHOWN, verdict, unit="grades"))
        return found

    def grades(self, given: Mapping[Pair, int]) -> Ints:
        """Return the grades of all passages [passages]; UNGRADED for those not in `given`."""
        return np.array([given.get(one, UNGRADED) for one in self.pairs], dtype=np.int64)

    def scores(self, grades: Ints) -> Floats:
        """Return nDCG@10 [questions with a relevant passage, routes]."""
        return np.array([row for row in self.rows(grades) if row is not None]).reshape(-1, len(self.routes))

    def rows(self, grades: Ints) -> list[Floats | None]:
        """Return nDCG@10 of each question [routes], in the order of the pool; None if nothing is relevant."""
        return [self._row(grades, at) for at in range(self.questions)]

    def _row(self, grades: Ints, question: int) -> Floats | None:
        """Return nDCG@10 of one question [routes]; None if no passage is relevant."""
        where = self.asked == question
        gains = np.maximum(grades[where], 0).astype(float)
        best = np.sort(gains)[::-1][:TOP]
        ideal = float((best / np.log2(np.arange(len(best)) + 2)).sum())
        return gains @ self.discounts[where] / ideal if ideal > 0 else None

    def turning(self, grades: Ints, of: Collection[Pair], relevant_from: int) -> list[Pair]:
        """Return the passages among `of` that would change the decision if their grade were the opposite,
        those first that separate the routes most; of the first MOST_FLIPPED of them.
        """
        rows, found = self.rows(grades), []
        now = self._standing(rows)
        for one in [one for one in self.order() if one in of][:MOST_FLIPPED]:
            at, flipped = self.pairs.index(one), grades.copy()
            flipped[at] = 0 if grades[at] >= relevant_from else max(GRADES)
            asked = int(self.asked[at])
            if self._standing([*rows[:asked], self._row(flipped, asked), *rows[asked + 1 :]]) != now:
                found.append(one)
        return found

    def standing(self, grades: Ints) -> Standing:
        """Return the decision by these grades."""
        return self._standing(self.rows(grades))

    def _standing(self, rows: Sequence[Floats | None]) -> Standing:
        scores = np.array([row for row in rows if row is not None])
        n = len(scores)
        if not n:
            return Standing("undecided", None)
        if n < MIN_QUESTIONS:  # too few to ship a route: the best so far is all there is
            return Standing("undecided", self.routes[int(np.argmax(scores.mean(axis=0)))])
        options = [
            Option(name, float(column.mean()), n, "passes", Cost(None, None, self._ms.get(name)))
            for name, column in zip(self.routes, scores.T, strict=True)
        ]
        places = {route: at for at, route in enumerate(self.routes)}
        covariance = np.cov(scores.T)

        def compared(one: str, other: str) -> Difference | None:
            a, b = places[one], places[other]
            variance = covariance[a, a] + covariance[b, b] - 2 * covariance[a, b]
            delta = float(scores[:, a].mean() - scores[:, b].mean())
            return from_summary(one, other, n, delta, sqrt(max(0.0, float(variance))))

        verdict = decide(options, compared)
        best = verdict.best_so_far
        return Standing(verdict.decision, verdict.chosen or (best.route if best else None))

    def settled(self, grades: Ints, seed: int = 0) -> bool:
        """Return whether more grades would hardly change the decision."""
        now, draw = self.standing(grades), np.random.default_rng(seed)
        if now.route is None or (grades >= 0).sum() < min(LEAST, len(grades)):
            return False
        misses, mine = 0, self.routes.index(now.route)
        share, graded = self.shares(grades), grades >= 0
        for _ in range(COMPLETIONS):
            relevant = draw.random(len(grades)) < share
            gains = np.where(relevant, draw.choice(grades[grades > 0], len(grades)), 0)
            completed = np.where(graded, grades, gains)
            means = self.scores(completed).mean(axis=0)
            behind = means.max() - means[mine] > TOLERANCE
            misses += bool(behind or self.standing(completed).kind != now.kind)
            if misses > COMPLETIONS - AGREEING:
                return False
        return True

    def shares(self, grades: Ints) -> Floats:
        """Return how likely each passage is relevant, by those graded at like ranks [passages]."""
        height, graded = self.discounts.mean(axis=1), grades >= 0
        near = np.exp(-(((height[:, None] - height[graded][None]) / BANDWIDTH) ** 2) / 2)
        assumed = np.clip(0.6 * height, 0.01, 0.6)
        found: Floats = (PRIOR * assumed + near @ (grades[graded] > 0)) / (PRIOR + near.sum(axis=1))
        return found


def contest(desk: Desk) -> Contest:
    """Return the contest of the routes that filled a label set's pool."""
    counts = {question.id: question.count for question in desk.questions}
    return Contest({(id, one): dict(desk.pool[id][one].found) for id, one in desk.pairs}, counts=counts)


def second_opinions(desk: Desk, annotator: str) -> list[Pair]:
    """Return the passages that one other person alone graded, and whose opposite grade would change the
    decision, those first that separate the routes most.
    """
    single = (one for one in final(desk).values() if one.how == "one grade")
    of = {(one.question, one.passage) for one in single if one.of[0].annotator != annotator}
    found = contest(desk)
    return found.turning(found.grades(given(desk)), of, desk.set.relevant_from)


def settled(desk: Desk) -> bool:
    """Return whether more grades of a set would hardly change which route is best; never of traffic, whose
    grades are a sample.
    """
    found = contest(desk)
    return len(found.routes) > 1 and SHOWN not in found.routes and found.settled(found.grades(given(desk)))


def beyond_shown(desk: Desk) -> list[Finding]:
    """Return what the grades of a set of traffic say of its routes; nothing of other sets. A passage of which
    somebody cannot tell counts as not relevant.
    """
    found = contest(desk)
    unclear = {one.pair: 0 for one in desk.current if one.kind == "cannot"}
    return found.beyond_shown(found.grades({**unclear, **given(desk)})) if SHOWN in found.routes else []


def given(desk: Desk) -> dict[Pair, int]:
    return {one: kept.grade for one, kept in final(desk).items() if kept.grade is not None}
