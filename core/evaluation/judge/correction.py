"""Means and differences over all questions, of which people labelled some: corrected for a judge's errors and
for the chances with which questions were drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np

from core.analysis.metrics import HEADLINE, by_question
from core.evaluation.dataset import LabelledSet
from core.evaluation.figures import CorrectedMean
from core.evaluation.finding import count
from core.evaluation.labels.draw import DrawnSample, largest_difference, sample
from core.evaluation.outcome import Outcomes
from core.evaluation.question_folder import Qrels
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_figures
from core.evaluation.scoring import route_values
from core.evaluation.statistics import FEASIBLE, LEVEL, ROUNDING, Interval, Table, auc, centre_and_half

LEAST = 20  # labelled questions: fewer were not simulated, and correct nothing
READABLE = 0.9  # share of passages that a judge must grade
# An AUC below which a judge saves next to no labels (simulated, see docs/figures.md).
PAYS_FROM = 0.8


@dataclass(slots=True)
class Filled:
    """A judge's grades of passages."""

    # question -> passage -> grade
    grades: Qrels = field(default_factory=dict)
    # (question, passage) -> P(Yes)
    scores: dict[tuple[str, str], float] = field(default_factory=dict)
    # passages whose reply could not be read, and those that are not in the corpus: both count as not relevant
    unscored: int = 0
    unknown: int = 0
    # the first reason for no score
    why: str = ""

    @property
    def judged(self) -> int:
        """Return how many passages were graded."""
        return len(self.scores)


def with_corrected(
    figures: Mapping[str, Any], labelled: LabelledSet, outcomes: Outcomes, filled: Filled | None = None
) -> dict[str, Any]:
    """Return the figures with each route's corrected mean of nDCG@10, "corrected": what these rest on and the
    corrected difference of every two routes, and the decision that follows. `filled`: a judge's grades.
    """
    routes, drawn = list(figures["routes"]), sample(labelled, outcomes)
    rest = len(drawn.every) - len(drawn.labelled)
    scores = [
        (score, labelled.qrels[question][passage] >= labelled.relevant_from)
        for (question, passage), score in (filled.scores.items() if filled else ())
        if passage in labelled.qrels.get(question, {})
    ]
    area = auc([score for score, _ in scores], [relevant for _, relevant in scores])
    unused = _unused(filled, area, len(drawn.labelled)) if filled and rest else ""
    judge = filled if filled and rest and not unused else None
    views = {route: _View.of(labelled, outcomes, route, judge) for route in routes}
    rows, pairs = dict(figures["routes"]), []
    for route, one in views.items():
        if (mean := _mean(drawn, one)) is None:
            continue
        rows[route] = {**rows[route], "corrected": {**mean.model_dump(), "metric": HEADLINE}}
        for other in (name for name in routes if name != route):
            found = _difference(drawn, one, views[other], labelled)
            if found is not None and other == figures["baseline"]:
                rows[route]["corrected"]["vs_baseline"] = found.model_dump()
            if found is not None and (judge or drawn.drawn):
                pairs.append({"route": route, "other": other, **found.model_dump()})
    empty = sum(labelled.touched(id) and not labelled.labelled(id) for id in outcomes)
    told = {
        "metric": HEADLINE,
        "labelled": len(drawn.labelled),
        "unlabelled": rest,
        "without_relevant": empty,
        "auc": area if judge else None,
        "judged": filled.judged if filled else 0,
        "drawn": drawn.drawn,
        "pairs": pairs,
    }
    said = _remarks(told, filled, unused, sum(map(labelled.touched, drawn.every)) - len(drawn.labelled))
    whole = {**figures, "routes": rows, "corrected": told, "warnings": [*figures["warnings"], *said]}
    if pairs:
        # by names, as in the decision that it replaces
        measured = replace(of_figures(whole, str(figures["dataset"])), titles={})
        whole["decision"] = {"metric": HEADLINE, **decide(measured, Criteria(HEADLINE)).verdict.document()}
    return whole


@dataclass(frozen=True, slots=True)
class _View:
    """nDCG@10 of a route, by question: by people's labels where they found something relevant; and by the
    judge's grades alone where the route ended well, 0 if it graded nothing. `hits` are its rankings there.
    """

    people: Mapping[str, float]
    judge: Mapping[str, float]
    hits: Mapping[str, Sequence[str]]
    judged: bool

    @classmethod
    def of(cls, labelled: LabelledSet, outcomes: Outcomes, route: str, filled: Filled | None) -> _View:
        """Return the view of a route."""
        hits = {q: by[route].hits for q, by in outcomes.items() if route in by and by[route].status == "ok"}
        grades = {q: filled.grades.get(q, {}) for q in hits} if filled else {}
        found = by_question(grades, hits, relevant_from=labelled.relevant_from, metrics=[HEADLINE])
        people = route_values(labelled, outcomes, route, metrics=[HEADLINE])
        return cls(
            {id: row[HEADLINE] for id, row in people.items()},
            {q: found[q][HEADLINE] if q in found else 0.0 for q in hits},
            {q: [id for id, _ in some] for q, some in hits.items()},
            filled is not None,
        )


def _mean(drawn: DrawnSample, one: _View) -> CorrectedMean | None:
    ids = [id for id in drawn.labelled if id in one.people]
    every = [one.judge[id] for id in drawn.every if id in one.judge] if one.judged else []
    weights = [drawn.weights[id] for id in ids]
    return corrected([one.people[id] for id in ids], [one.judge[id] for id in ids], every, weights)


def _difference(drawn: DrawnSample, one: _View, other: _View, labelled: LabelledSet) -> CorrectedMean | None:
    """Return the corrected difference of two routes. A drawn question for which people found nothing relevant
    counts as no difference.
    """
    both = [id for id in drawn.every if id in one.judge and id in other.judge]
    kept = set(drawn.labelled) if drawn.drawn else one.people.keys() & other.people.keys()
    ids = [id for id in both if id in kept and id in drawn.weights]
    most = 1.0
    if drawn.drawn and not labelled.places:
        most = max(
            (drawn.weights[id] * largest_difference(one.hits[id], other.hits[id]) for id in both), default=1.0
        )
    return corrected(
        [one.people.get(id, 0.0) - other.people.get(id, 0.0) for id in ids],
        [one.judge[id] - other.judge[id] for id in ids],
        [one.judge[id] - other.judge[id] for id in both] if one.judged else [],
        [drawn.weights[id] for id in ids],
        most=most,
        paired=True,
    )


def _unused(filled: Filled, area: float | None, labels: int) -> str:
    """Return why a judge corrects nothing, or "" if it may."""
    asked, grades = filled.judged + filled.unscored, {g for by in filled.grades.values() for g in by.values()}
    if filled.judged < READABLE * asked:
        return f"it graded {filled.judged} of {asked} passages"
    if len(grades) < 2:
        return "it gives every passage the same grade"
    if labels < LEAST:
        return f"{count(labels, 'labelled questions')} are too few, it takes {LEAST}"
    return "the passages that people labelled are all of one kind" if area is None else ""


def _remarks(told: Mapping[str, Any], filled: Filled | None, unused: str, late: int) -> list[str]:
    """Return what to know before the corrected means are used."""
    said = []
    if told["drawn"]:
        said.append(
            "questions were drawn with known chances: corrected figures and the decision by nDCG@10 are "
            "about all of them, every other figure about those labelled"
        )
        if late > 0:
            said.append(f"{count(late, 'questions')} labelled out of the drawn order count as unlabelled")
    if filled is None:
        return said
    if not told["unlabelled"]:
        return [*said, "the judge corrects nothing: every question is labelled or has no answer"]
    if unused:
        return [*said, f"the judge corrects nothing: {unused}"]
    if told["auc"] < PAYS_FROM:
        said.append(f"the judge's AUC is {told['auc']:.2f}; below {PAYS_FROM} it saves next to no labels")
    if not told["drawn"]:
        said.append("corrected means hold if the labelled questions are a random part of all")
        if told["without_relevant"]:
            said.append(
                f"people found nothing relevant for {told['without_relevant']} questions, and corrected "
                "means count every unlabelled question as one that has a relevant passage"
            )
    return said


def corrected(
    people: Sequence[float],
    judge: Sequence[float],
    every: Sequence[float],
    weights: Sequence[float] | None = None,
    *,
    most: float = 1.0,
    paired: bool = False,
) -> CorrectedMean | None:
    """Estimate a mean over all questions; None without a labelled one.

    `people` and `judge` are a metric of the labelled questions, by people's labels and by the judge's grades;
    `every` is the metric by the judge's grades of all questions, () without a judge. Values are between 0 and
    1, or if `paired` between -1 and 1. `weights` have a mean of about 1 (see core.evaluation.labels.draw);
    `most` bounds a weighted paired difference. The interval holds however wrong the judge is, if the labelled
    questions are a random part.

    The estimate is that of PPI++ and active statistical inference: the judge's mean, times a weight, plus the
    weighted mean of what people's labels leave of it. As in `statistics.mean_interval`, which this equals
    without a judge and weights, two pseudo-observations stand at the bounds. The judge is left out unless it
    narrows the interval.
    """
    if not (n := len(people)):
        return None
    from scipy.special import stdtrit

    known, scale = np.asarray(people, float), np.ones(n) if weights is None else np.asarray(weights, float)
    average = float(np.average(known, weights=scale))
    about = 0.0 if paired else average
    values = about + scale * (known - about)
    most = max(most, float(np.abs(values).max())) if paired else 1.0
    least = -most if paired else 0.0

    def estimate(shift: Table, spread: float, common: float) -> tuple[float, Interval, float, float, float]:
        """Return the width of the interval, its ends, half its width if it reached no bound, the estimate and
        the judge's weight. `shift`: the judge's values less their mean, `spread`: the variance of that mean,
        `common`: its covariance with the mean of people's labels of all questions.
        """
        padded, shifts = np.array([*values, least, most]), np.array([*shift, 0.0, 0.0])
        within = np.cov(np.stack([padded, shifts])) / (n + 2)
        room = float(within[1, 1]) - spread
        weight = float(np.clip((within[0, 1] - common) / room, 0.0, 1.0)) if room > 0 else 0.0
        rest = padded - weight * shifts
        variance = float(rest.var(ddof=1)) / (n + 2) + max(0.0, weight * (2 * common - weight * spread))
        half = float(stdtrit(n + 1, (1 + LEVEL) / 2)) * sqrt(variance)
        middle, mean = float(rest.mean()), float(np.clip(rest[:n].mean(), least, most))
        ends = max(least, middle - half), min(most, middle + half)
        return ends[1] - ends[0], ends, half, mean, weight

    found = estimate(np.zeros(n), 0.0, 0.0)
    if len(every) > n:
        common = float(np.cov(judge, known, aweights=scale, ddof=0)[0, 1])
        shift = scale * (np.asarray(judge) - np.mean(every))
        found = min(found, estimate(shift, float(np.var(every)) / len(every), common / len(every)))
    _, ends, half, mean, weight = found
    sd = sqrt(float(np.average((known - average) ** 2, weights=scale)) * n / (n - 1)) if n > 1 else None
    further = bisect_left(
        range(n, FEASIBLE),
        True,
        key=lambda m: centre_and_half(m, average, sd or 0.0, -1.0 if paired else 0.0)[1] <= half + ROUNDING,
    )
    return CorrectedMean(mean=mean, ci95=ends, labels=n, equal_to=n + further, weight=weight, sd=sd)
