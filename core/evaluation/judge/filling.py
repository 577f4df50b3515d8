"""The judge in an evaluation: metrics as ranges, once with every unjudged passage as not relevant and once as
the judge grades it; and the grades that core.evaluation.judge.correction corrects by people's labels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from core.domain.errors import BadInput, Cancelled
from core.evaluation import report, sets
from core.evaluation.dataset import Written
from core.evaluation.judge import record as records
from core.evaluation.judge.correction import Filled, with_corrected
from core.evaluation.judge.measure import SEED, Judging, check_model, graded
from core.evaluation.judge.source import own_policy
from core.evaluation.labels import desk
from core.evaluation.labels_file import PLACED_FROM
from core.evaluation.scoring import route_values
from core.evaluation.text import IRRELEVANT, JUDGED

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from core.corpus.corpus import Corpus
    from core.domain.types import Query
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet
    from core.evaluation.judge.record import JudgeRecord
    from core.evaluation.judge.source import Of
    from core.evaluation.outcome import Outcomes
    from core.evaluation.question_folder import Qrels
    from core.evaluation.spec import Spec

DEPTH = 10  # passages of each ranking that are judged; metrics that look deeper have no range
RANGED = ("ndcg@10", "recall@10", "mrr@10", "precision@5", "precision@10", "hit@10")
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
    judging = Judging(engine, corpus, cancel)
    for done, (query, question, passage) in enumerate(wanted):
        progress(done, len(wanted))
        if passage not in texts:
            filled.unknown += 1
            continue
        try:
            score = judging.score(query, texts[passage], plan.policy, plan.relevant_from)
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
    first `DEPTH` passages of all routes; nothing if they left out none. The order is random, so that a judge
    that changes while it grades errs alike on both.
    """
    known = [one for one in labelled.questions if one.id in outcomes]
    left = {one.id for one in known if one.answerable is not False and not labelled.touched(one.id)}
    pooled = {
        (question.id, passage): question.query
        for question in (known if left else ())
        if labelled.labelled(question.id) or question.id in left
        for one in outcomes[question.id].values()
        if one.status == "ok"
        for passage, _ in one.hits[:DEPTH]
    }
    wanted = [(query, question, passage) for (question, passage), query in pooled.items()]
    random.Random(SEED).shuffle(wanted)
    return wanted


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
    corpus = engine.corpus(figures["corpus"])
    wanted = unjudged(labelled, outcomes) if plan.record else []
    ranges = fill(engine, corpus, wanted, plan, cancel, progress)
    everything = fill(engine, corpus, pools(labelled, outcomes), plan, cancel, progress)
    if ranges is None or everything is None:
        return {**figures, "interrupted": True}
    warnings = [*figures["warnings"], *([plan.refused] if plan.refused else [])]
    if why := ranges.why or everything.why:
        warnings.append(f"the judge gave some passages no grade: {why}")
    whole = with_corrected({**figures, "warnings": warnings}, labelled, outcomes, everything)
    if plan.record is not None:
        whole["judge"] = block(labelled, outcomes, list(figures["routes"]), plan.record, ranges)
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
