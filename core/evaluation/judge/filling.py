"""The judge in an evaluation: metrics as ranges, once with every unjudged passage as not relevant and once as
the judge grades it; and means over all questions, corrected by people's labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from core.analysis.metrics import HEADLINE, by_question
from core.domain.errors import BadInput, Cancelled
from core.evaluation import report, sets
from core.evaluation.dataset import Written
from core.evaluation.judge import record as records
from core.evaluation.judge.measure import Judging, auc, check_model, graded
from core.evaluation.judge.source import own_policy
from core.evaluation.labels import desk
from core.evaluation.labels_file import PLACED_FROM
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_figures
from core.evaluation.scoring import route_values
from core.evaluation.statistics import LEVEL, Interval, Table
from core.evaluation.text import IRRELEVANT, JUDGED

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from core.corpus.corpus import Corpus
    from core.domain.types import Query
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet, Question
    from core.evaluation.judge.record import JudgeRecord
    from core.evaluation.judge.source import Of
    from core.evaluation.outcome import Outcomes
    from core.evaluation.question_folder import Qrels
    from core.evaluation.spec import Spec

DEPTH = 10  # passages of each ranking that are judged; metrics that look deeper have no range
RANGED = ("ndcg@10", "recall@10", "mrr@10", "precision@5", "precision@10", "hit@10")
# An AUC below which a judge saves next to no labels (simulated, see docs/figures.md).
PAYS_FROM = 0.8
Progress = Callable[[int, int], None]  # (passages judged, of how many)
Wanted = Sequence[tuple["Query", str, str]]  # (query, question id, passage id) to be judged


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """The grading rules of an evaluation's judge."""

    # the guidelines it is given
    policy: str
    relevant_from: int
    # its measured agreement with people; None if that is not shown, so that it may fill in no grade
    record: JudgeRecord | None
    # why it may not
    refused: str = ""

    def grade(self, score: float) -> int:
        """Return the grade for a score: relevant from 0.5 if no bounds were measured."""
        return graded(score, self.record.bounds if self.record else (0.5,) * self.relevant_from)


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


def plan(engine: Engine, spec: Spec, folder: Path | None) -> JudgePlan:
    """Return how the model in use judges the questions of an evaluation; `folder` is where its corpus'
    documents are. Raises Unavailable if there is no model.
    """
    check_model(engine)
    if spec.questions:
        why = "ranges need a label set (--labels NAME) or the labels of the corpus, not --questions"
        return JudgePlan(own_policy("", None, 1), 1, None, why)
    of: Of
    if spec.labels is None:
        found = sets.read(spec.corpus, folder, split="all")
        relevant_from = PLACED_FROM if isinstance(found, Written) else found.relevant_from
        of, name, policy = "own labels", spec.corpus, own_policy(spec.corpus, folder, relevant_from)
    else:
        if engine.store is None:
            raise BadInput(f"labels are not stored here, so the set {spec.labels!r} cannot be read")
        one = desk.load(engine.store, spec.labels).set
        of, name, policy, relevant_from = "label set", one.name, one.guidelines, one.relevant_from
    try:
        record = allowed(engine, of, name, policy)
    except BadInput as error:
        return JudgePlan(policy, relevant_from, None, str(error))
    return JudgePlan(policy, record.relevant_from, record)


def allowed(engine: Engine, of: Of, name: str, policy: str) -> JudgeRecord:
    """Return the record by which the model in use may grade unjudged passages of a set. Raises BadInput if it
    does not exist for this model, prompt and `policy`, or agreement with people is not shown.
    """
    model = engine.llm().model
    record = records.read(engine.settings.home, of, name, model)
    why = records.not_calibrated(record, model, policy, name)
    if record is None or why is not None:
        raise BadInput(str(why))
    if not record.shown:
        raise BadInput(
            f"the judge {model} may not grade unjudged passages of {name}: {records.refusal(record)}. "
            f"{records.agreement(record)} {records.leaves_open(record)}"
        )
    return record


def unjudged(labelled: LabelledSet, outcomes: Outcomes) -> list[tuple[Query, str, str]]:
    """(query, question id, passage id) of each passage without a label among the first `DEPTH` of a route
    that ended well, once; of the questions with a relevant passage alone.
    """
    found: dict[tuple[str, str], Query] = {}
    for question in labelled.questions:
        if not labelled.labelled(question.id):
            continue
        known = labelled.qrels[question.id]
        for one in outcomes.get(question.id, {}).values():
            if one.status == "ok":
                first = (passage for passage, _ in one.hits[:DEPTH] if passage not in known)
                found |= {(question.id, passage): question.query for passage in first}
    return [(query, question, passage) for (question, passage), query in found.items()]


def fill(
    engine: Engine,
    corpus: Corpus,
    wanted: Wanted,
    plan: JudgePlan,
    cancel: threading.Event,
    progress: Progress = lambda _done, _of: None,
) -> Filled | None:
    """Grade the passages in `wanted`; None once `cancel` is set. What was asked before is cached."""
    filled = Filled()
    texts = corpus.by_ids(sorted({passage for _, _, passage in wanted}))
    judging = Judging(engine, corpus, plan.policy, plan.relevant_from, cancel)
    for done, (query, question, passage) in enumerate(wanted):
        if cancel.is_set():
            return None
        progress(done, len(wanted))
        if passage not in texts:
            filled.unknown += 1
            continue
        try:
            score = judging.score(query, texts[passage])
        except Cancelled:
            return None
        if score is not None:
            filled.scores[question, passage] = score
            filled.grades.setdefault(question, {})[passage] = plan.grade(score)
    filled.unscored, filled.why = judging.unscored, judging.why
    progress(len(wanted), len(wanted))
    return filled


def pools(labelled: LabelledSet, outcomes: Outcomes) -> Wanted:
    """Return what must be judged to correct the means: at each question that people labelled or left out, the
    first `DEPTH` passages of all routes; nothing if they left out none.
    """
    if not unlabelled(labelled, outcomes):
        return []
    pooled = {
        (question.id, passage): question.query
        for question in labelled.questions
        if labelled.labelled(question.id) or _left_out(labelled, question)
        for one in outcomes.get(question.id, {}).values()
        if one.status == "ok"
        for passage, _ in one.hits[:DEPTH]
    }
    return [(query, question, passage) for (question, passage), query in pooled.items()]


def unlabelled(labelled: LabelledSet, outcomes: Outcomes) -> list[str]:
    """Return the questions that were asked and that nobody labelled or marked as unanswerable."""
    return [one.id for one in labelled.questions if one.id in outcomes and _left_out(labelled, one)]


def _left_out(labelled: LabelledSet, question: Question) -> bool:
    known = labelled.qrels.get(question.id) or labelled.places.get(question.id)
    return not known and question.answerable is not False


def correct(
    labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str], baseline: str, filled: Filled
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return by route the corrected mean of nDCG@10 and its difference from `baseline`, and what they rest
    on: the counts of questions, the judge's AUC on passages that people labelled, and the corrected
    difference of every two routes.
    """
    rest = unlabelled(labelled, outcomes)
    people = {route: route_values(labelled, outcomes, route, metrics=[HEADLINE]) for route in routes}
    judged = {route: _by_judge(labelled, outcomes, route, filled) for route in routes}
    rows, pairs = {}, []
    for route in routes:
        own, by = people[route], judged[route]
        mean = corrected(
            [values[HEADLINE] for values in own.values()],
            [by.get(id, 0.0) for id in own],
            [by[id] for id in rest if id in by],
        )
        if mean is None:
            continue
        rows[route] = {**asdict(mean), "metric": HEADLINE}
        for other in routes:
            base, beside = people[other], judged[other]
            values = [own[id][HEADLINE] - base[id][HEADLINE] for id in own if id in base]
            difference = corrected(
                values,
                [by.get(id, 0.0) - beside.get(id, 0.0) for id in own if id in base],
                [by[id] - beside[id] for id in rest if id in by and id in beside],
                -1.0,
                1.0,
            )
            if other == route or difference is None:
                continue
            if other == baseline:
                rows[route]["vs_baseline"] = asdict(difference)
            sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
            pairs.append({"route": route, "other": other, **asdict(difference), "sd": sd})
    scores = [
        (score, labelled.qrels[question][passage] >= labelled.relevant_from)
        for (question, passage), score in filled.scores.items()
        if passage in labelled.qrels.get(question, {})
    ]
    empty = [q for q in outcomes if labelled.qrels.get(q) and not labelled.labelled(q)]
    return rows, {
        "metric": HEADLINE,
        "labelled": sum(labelled.labelled(question) for question in outcomes),
        "unlabelled": len(rest),
        "without_relevant": len(empty),
        "auc": auc([score for score, _ in scores], [relevant for _, relevant in scores]),
        "judged": filled.judged,
        "pairs": pairs,
    }


def _by_judge(labelled: LabelledSet, outcomes: Outcomes, route: str, filled: Filled) -> dict[str, float]:
    """Question -> nDCG@10 by the judge's grades alone, if the route ended well; 0 if it graded nothing."""
    hits = {q: by[route].hits for q, by in outcomes.items() if route in by and by[route].status == "ok"}
    grades, at = {q: filled.grades.get(q, {}) for q in hits}, labelled.relevant_from
    found = by_question(grades, hits, relevant_from=at, metrics=[HEADLINE])
    return {question: found[question][HEADLINE] if question in found else 0.0 for question in hits}


def _remarks(told: Mapping[str, Any]) -> list[str]:
    """Return what to know before the corrected means are used."""
    if not told["unlabelled"]:
        return ["the judge corrects nothing: every question is labelled or has no answer"]
    said = ["corrected means hold if the labelled questions are a random part of all"]
    if told["auc"] is None:
        said.append("no passage that people labelled tells whether the judge is right; its AUC is unknown")
    elif told["auc"] < PAYS_FROM:
        said.append(f"the judge's AUC is {told['auc']:.2f}; below {PAYS_FROM} it saves next to no labels")
    if told["without_relevant"]:
        said.append(
            f"people found nothing relevant for {told['without_relevant']} questions, and corrected means "
            "count every unlabelled question as one that has a relevant passage"
        )
    return said


def block(
    labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str], record: JudgeRecord, filled: Filled
) -> dict[str, Any]:
    """Return the part "judge" of metrics.json: whose judgement, and both ends of each metric for each route.

    Both ends are means over the same questions, those that people found something relevant for.
    """
    asked = [q.id for q in labelled.questions if labelled.labelled(q.id)]
    ends: Mapping[str, Qrels] = {IRRELEVANT: {}, JUDGED: filled.grades}
    at = labelled.relevant_from
    means: dict[str, dict[str, dict[str, float]]] = {route: {} for route in routes}
    for route in routes:
        for end, more in ends.items():  # {} if the route ended well at no question
            rows = [
                *route_values(labelled, outcomes, route, questions=asked, metrics=RANGED, more=more).values()
            ]
            means[route][end] = {m: float(np.mean([row[m] for row in rows])) for m in RANGED} if rows else {}
    return {
        "by": record.model,
        "prompt": record.prompt,
        "policy_hash": record.policy_hash,
        "measured": record.made,
        "kappa": record.binary.value,
        "kappa_ci95": record.binary.ci95,
        "depth": DEPTH,
        "judged": filled.judged,
        "relevant": sum(grade >= at for some in filled.grades.values() for grade in some.values()),
        "without_a_grade": filled.unscored + filled.unknown,
        "routes": {
            route: {metric: {name: by[metric] for name, by in both.items()} for metric in RANGED}
            for route, both in means.items()
            if all(both.values())
        },
        "orders": {metric: _orders(means, metric) for metric in RANGED},
    }


def added(
    engine: Engine,
    figures: Mapping[str, Any],
    labelled: LabelledSet,
    outcomes: Outcomes,
    plan: JudgePlan,
    *,
    out: Path | None,
    cancel: threading.Event,
    progress: Progress,
) -> dict[str, Any]:
    """Return the figures of an evaluation with each route's "corrected" mean and, if the judge may fill in
    grades, the part "judge"; written to `out` again. Without them, and "interrupted", once `cancel` is set.
    """
    corpus, routes = engine.corpus(figures["corpus"]), list(figures["routes"])
    wanted = unjudged(labelled, outcomes) if plan.record else []
    ranges = fill(engine, corpus, wanted, plan, cancel, progress)
    everything = fill(engine, corpus, pools(labelled, outcomes), plan, cancel, progress)
    if ranges is None or everything is None:
        return {**figures, "interrupted": True}
    means, told = correct(labelled, outcomes, routes, figures["baseline"], everything)
    warnings = [*figures["warnings"], *([plan.refused] if plan.refused else []), *_remarks(told)]
    if why := ranges.why or everything.why:
        warnings.append(f"the judge gave some passages no grade: {why}")
    whole = {
        **figures,
        "corrected": told,
        "routes": {
            route: {**row, **({"corrected": means[route]} if route in means else {})}
            for route, row in figures["routes"].items()
        },
        "warnings": warnings,
    }
    if told["unlabelled"]:
        # by names, as in the decision that it replaces
        measured = replace(of_figures(whole, str(figures["dataset"])), titles={})
        found = decide(measured, Criteria(HEADLINE))
        whole["decision"] = {"metric": HEADLINE, **found.verdict.document()}
    if plan.record is not None:
        whole["judge"] = block(labelled, outcomes, routes, plan.record, ranges)
    if out is not None:
        report.write(out, whole, labelled, outcomes)
    return whole


def _orders(means: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str) -> dict[str, Any]:
    """Return the routes at either end, the best first, and the pairs that are the other way round (ties are
    not).
    """
    at = {
        end: {route: both[end][metric] for route, both in means.items() if both[end]}
        for end in (IRRELEVANT, JUDGED)
    }
    order = {end: sorted(by, key=lambda route: (-by[route], route)) for end, by in at.items()}
    swapped = [
        [a, b]
        for a, b in combinations(order[IRRELEVANT], 2)
        if at[IRRELEVANT][a] > at[IRRELEVANT][b] and at[JUDGED][a] < at[JUDGED][b]
    ]
    return {**order, "swapped": swapped}


Row = Table  # one dimension


@dataclass(frozen=True, slots=True)
class Corrected:
    """An estimate for all questions, of which people labelled some."""

    mean: float
    ci95: Interval
    # questions that people labelled
    labels: int
    # labelled questions that would give an interval this narrow without a judge; never less than `labels`
    equal_to: int
    # how far the judge's grades count, from 0 (not at all) to 1
    weight: float


def corrected(
    people: Sequence[float],
    judge: Sequence[float],
    unlabelled: Sequence[float],
    low: float = 0.0,
    high: float = 1.0,
) -> Corrected | None:
    """Estimate a mean over labelled and unlabelled questions; None without a labelled one.

    `people` and `judge` are a metric of the same labelled questions, by people's labels and by the judge's
    grades; `unlabelled` is the metric by the judge's grades where people gave none. All are between `low` and
    `high`. The interval holds however wrong the judge is, if the labelled questions are a random part of all.

    The labelled part has two pseudo-observations, one at each bound, as in `statistics.mean_interval`, which
    this equals at weight 0. The weight minimises the estimated variance; if the interval is still wider than
    that of the labels alone, which happens at a bound, the judge is left out.
    """
    n = len(people)
    if n == 0:
        return None
    alone = _estimate(people, np.zeros(n), np.zeros(0), low, high)
    if not len(unlabelled):
        return alone
    found = _estimate(people, np.asarray(judge) - np.mean(unlabelled), np.asarray(unlabelled), low, high)
    return found if _width(found) < _width(alone) else alone


def _estimate(people: Sequence[float], shift: Row, unlabelled: Row, low: float, high: float) -> Corrected:
    """Return the estimate; `shift` is the judge's value of each labelled question less its mean elsewhere."""
    from scipy.special import stdtrit

    n = len(people)
    values, shifts = np.array([*people, low, high]), np.array([*shift, 0.0, 0.0])
    within, between = np.cov(np.stack([values, shifts])) / (n + 2)
    weight, variance = 0.0, float(within[0])
    if len(unlabelled) > 1:
        spread = float(between[1] + np.var(unlabelled, ddof=1) / len(unlabelled))
        weight = float(np.clip(between[0] / spread, 0.0, 1.0)) if spread > 0 else 0.0
        variance += weight * (weight * spread - 2 * float(between[0]))
    half = float(stdtrit(n + 1, (1 + LEVEL) / 2) * np.sqrt(max(variance, 0.0)))
    middle = float(np.mean(values - weight * shifts))
    ends = (max(low, middle - half), min(high, middle + half))
    gain = float(within[0]) / variance if variance > 0 else 1.0
    return Corrected(
        float(np.clip(np.mean(people - weight * shift), low, high)), ends, n, max(n, int(n * gain)), weight
    )


def _width(one: Corrected) -> float:
    return one.ci95[1] - one.ci95[0]
