"""Two evaluations compared, in figures and in words: each route question by question, with the difference of
the means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from core.analysis.metrics import QUALITY, by_question, titled
from core.domain.errors import BadInput
from core.evaluation import comparison
from core.evaluation.diff.questions import (
    EvaluationSide,
    PassageChange,
    QuestionDiff,
    QuestionsDiff,
    changes,
    common_labels,
    depth_of,
    displaced,
    questions_diff,
    relevant_in_both,
)
from core.evaluation.experiment_store import Evaluation
from core.evaluation.finding import compared, count, sentence
from core.evaluation.templating import say, sentences

Pair = tuple[str, str]  # the route in the first evaluation, and in the second


@dataclass(frozen=True, slots=True)
class RouteDiff:
    """A comparison of one route of each evaluation. `mcnemar_p`: exact, of fixed against broken.
    `difference`: second minus first in the metric (core.evaluation.comparison.family, one Holm family over
    the routes compared); None if no question has a value in both. `means`: over the same questions.
    """

    before: str
    after: str
    questions: QuestionsDiff
    mcnemar_p: float
    difference: Mapping[str, Any] | None
    means: tuple[float, float] | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, without the questions."""
        found = self.questions
        return {
            "route_before": self.before,
            "route_after": self.after,
            "compared": len(found.questions),
            **{change: len(found.of(change)) for change in ("fixed", "broken", "unchanged")},
            "exchanged": found.exchanged,
            "mcnemar_p": self.mcnemar_p,
            "mean_before": self.means[0] if self.means else None,
            "mean_after": self.means[1] if self.means else None,
            "difference": self.difference,
            "left_out": asdict(found.left_out),
            "labels_changed": found.relabelled,
        }


@dataclass(frozen=True, slots=True)
class EvaluationsDiff:
    """Two evaluations. A passage is found among the first `depth`; `notes` say what else changed."""

    before: str
    after: str
    metric: str
    depth: int
    routes: tuple[RouteDiff, ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return it as JSON values: a summary for each route, then every question of every route."""
        return {
            "before": self.before,
            "after": self.after,
            "metric": self.metric,
            "depth": self.depth,
            "notes": list(self.notes),
            "routes": [one.document() for one in self.routes],
            "questions": [
                {"route_before": one.before, "route_after": one.after, **question.document()}
                for one in self.routes
                for question in one.questions.questions
            ],
        }


def evaluations_diff(
    before: Evaluation, after: Evaluation, pairs: Sequence[Pair] = (), metric: str = "ndcg@10"
) -> EvaluationsDiff:
    """Compare two evaluations; without `pairs` every route that both measured.

    Questions count by the labels that both have. BadInput for a metric of no ranking, a route that was not
    measured, and where nothing can be compared.
    """
    if metric not in QUALITY:
        raise BadInput(f"metric {metric!r}: give one of {', '.join(QUALITY)}")
    pairs = list(dict.fromkeys(pairs)) or [(route, route) for route in after.routes if route in before.routes]
    if not pairs:
        sides = " and ".join(f"{one.name} ({', '.join(one.routes)})" for one in (before, after))
        raise BadInput(f"{sides} have no route in common; name one of each, A_ROUTE:B_ROUTE")
    depth = depth_of(metric)
    changed, unknown = changes(before, after)
    compared, values = [], []
    for one, other in pairs:
        then, now = EvaluationSide(before, one), EvaluationSide(after, other)
        found = questions_diff(then, now, depth)
        questions = []
        for asked in found.questions:  # with the passages that new or changed documents displaced
            least = max(then.relevant_from, now.relevant_from)
            relevant = relevant_in_both(then.questions[asked.id], now.questions[asked.id], least)
            was, by = (side.evaluation.outcomes[asked.id][side.route] for side in (then, now))
            questions.append(replace(asked, displaced=displaced(relevant, was, by, depth, changed)))
        found = replace(found, questions=tuple(questions))
        compared.append(found)
        values.append(_values(then, now, found, metric))
    if not any(found.questions for found in compared):
        raise BadInput(_nothing(before, after, compared[0]))
    shared = [[id for id in was if id in by] for was, by in values]
    columns = [[by[id] - was[id] for id in ids] for ids, (was, by) in zip(shared, values, strict=True)]
    tested = comparison.family(dict(zip(pairs, columns, strict=True)))
    routes = []
    for pair, found, ids, both in zip(pairs, compared, shared, values, strict=True):
        means = (fmean(both[0][id] for id in ids), fmean(both[1][id] for id in ids)) if ids else None
        routes.append(RouteDiff(*pair, found, mcnemar(found), tested.get(pair), means))
    notes = (*_notes(before, after, compared[0]), *([unknown] if unknown else []))
    return EvaluationsDiff(before.name, after.name, metric, depth, tuple(routes), notes)


def mcnemar(found: QuestionsDiff) -> float:
    """McNemar's exact test: two-sided p of the fixed and broken questions where either is as likely.

    The sign test of the questions that changed (McNemar 1947; exact by the binomial distribution).
    """
    from scipy.stats import binomtest

    fixed, broken = len(found.of("fixed")), len(found.of("broken"))
    return float(binomtest(fixed, fixed + broken, 0.5).pvalue) if fixed + broken else 1.0


def _values(
    before: EvaluationSide, after: EvaluationSide, found: QuestionsDiff, metric: str
) -> list[dict[str, float]]:
    """Return the metric at each question compared, first before, then after: by the labels that both have,
    where the route ended well.
    """
    sets = [side.evaluation.labelled for side in (before, after)]
    labels = {one.id: common_labels(*(known.judged(one.id) for known in sets)) for one in found.questions}
    least = max(before.relevant_from, after.relevant_from)
    values = []
    for side, labelled in zip((before, after), sets, strict=True):
        outcomes = {id: side.evaluation.outcomes[id][side.route] for id in labels}
        ranked = {id: labelled.ranking(id, one) for id, one in outcomes.items() if one.status == "ok"}
        rows = by_question(labels, ranked, relevant_from=least, metrics=(metric,))
        values.append({id: row[metric] for id, row in rows.items()})
    return values


def _nothing(before: Evaluation, after: Evaluation, found: QuestionsDiff) -> str:
    names, left = f"{before.name} and {after.name}", found.left_out
    if left.total == left.only_before + left.only_after:
        some = [next(iter(one.questions), "none") for one in (before, after)]
        return f"{names} have no question in common; they have for example {some[0]!r} and {some[1]!r}"
    return f"{names} have no question to compare: {'; '.join(left_out(found)) or 'none was asked'}"


def left_out(found: QuestionsDiff) -> list[str]:
    """Describe the questions that are not compared, and why."""
    left = found.left_out
    told = (
        (left.only_before, "in the first evaluation only"),
        (left.only_after, "in the second evaluation only"),
        (left.text_changed, "with a changed text"),
        (left.no_label_in_common, "whose relevant passages all changed"),
        (left.unlabelled, "without a relevant passage"),
    )
    return [f"{count(n)} {why}" for n, why in told if n]


def _notes(before: Evaluation, after: Evaluation, found: QuestionsDiff) -> list[str]:
    notes = []
    if found.undetermined:
        notes.append(
            f"{count(found.undetermined)} lost labels; whether their documents were deleted is not recorded."
        )
    corpora, prints = ([one.figures.get(key) for one in (before, after)] for key in ("corpus", "fingerprint"))
    if corpora[0] != corpora[1]:
        notes.append(f"The corpora differ: {corpora[0]}, then {corpora[1]}.")
    if prints[0] != prints[1]:
        notes.append("The corpus changed (another fingerprint), so that a passage may be lost with it.")
    if found.left_out.total:
        notes.append(f"Left out: {'; '.join(left_out(found))}.")
    if found.relabelled:
        notes.append(f"{count(found.relabelled)} with changed labels: only judgements of both count there.")
    return notes


def rule(depth: int) -> str:
    """Explain the words broken, fixed and unchanged."""
    return say("diff.rule", depth)


def route_name(one: RouteDiff) -> str:
    """Return the route, or both if they differ."""
    return one.before if one.before == one.after else f"{one.before} then, {one.after} now"


def summary(
    found: EvaluationsDiff, one: RouteDiff, title: Callable[[str], str] = lambda route: route
) -> list[str]:
    """Return lines on one route: the counts with McNemar's p, then the difference of the means."""
    now, then = f"{title(one.after)} in {found.after}", f"{title(one.before)} in {found.before}"
    difference = sentence(compared(one.difference, now, then, titled(found.metric)))
    return sentences("diff.summary", one, difference)


def passage_change(one: PassageChange) -> str:
    """Return the passage, its ranks, and the step that lost it if it was not found."""
    return say("diff.passage", one)


def displacements(question: QuestionDiff) -> list[str]:
    """Return a sentence for each passage that new or changed documents displaced."""
    return [say("diff.displaced", question.id, one) for one in question.displaced]
