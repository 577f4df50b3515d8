"""Metrics as ranges: once with every unjudged passage as not relevant, once as the judge grades it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from core.domain.errors import BadInput, Cancelled
from core.evaluation import report, sets
from core.evaluation.dataset import Written
from core.evaluation.judge import record as records
from core.evaluation.judge import words
from core.evaluation.judge.bounds import graded
from core.evaluation.judge.measure import Judging
from core.evaluation.judge.source import own_policy
from core.evaluation.judged_ranges import IRRELEVANT, JUDGED
from core.evaluation.labels import desk
from core.evaluation.labels_file import PLACED_FROM
from core.evaluation.scoring import route_values

if TYPE_CHECKING:
    import threading
    from pathlib import Path

    from core.corpus.corpus import Corpus
    from core.domain.types import Query
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet
    from core.evaluation.files import Qrels
    from core.evaluation.judge.record import JudgeRecord
    from core.evaluation.judge.source import Of
    from core.evaluation.outcome import Outcomes
    from core.evaluation.spec import Spec

DEPTH = 10  # passages of each ranking that are judged; metrics that look deeper have no range
RANGED = ("ndcg@10", "recall@10", "mrr@10", "precision@5", "precision@10", "hit@10")
Progress = Callable[[int, int], None]  # (passages judged, of how many)


@dataclass(slots=True)
class Filled:
    """The judge's `grades` of passages that people left unjudged: question -> passage -> grade. `unscored`
    ones got none, `unknown` ones are not in the corpus; both count as not relevant.
    """

    grades: Qrels = field(default_factory=dict)
    unscored: int = 0
    unknown: int = 0
    why: str = ""

    @property
    def judged(self) -> int:
        """Return how many passages were graded."""
        return sum(map(len, self.grades.values()))


def record_for(engine: Engine, spec: Spec, folder: Path | None) -> JudgeRecord:
    """Return `allowed` for the labels of an evaluation; `folder` is where its corpus' documents are."""
    if spec.questions:
        raise BadInput(
            "--judge needs a label set (--labels NAME) or the labels of the corpus, not --questions"
        )
    if spec.labels is None:
        found = sets.read(spec.corpus, folder, split="all")
        relevant_from = PLACED_FROM if isinstance(found, Written) else found.relevant_from
        return allowed(engine, "own labels", spec.corpus, own_policy(spec.corpus, folder, relevant_from))
    if engine.store is None:
        raise BadInput(f"labels are not stored here, so the set {spec.labels!r} cannot be read")
    one = desk.load(engine.store, spec.labels).set
    return allowed(engine, "label set", one.name, one.guidelines)


def allowed(engine: Engine, of: Of, name: str, policy: str) -> JudgeRecord:
    """Return the record by which the model in use may grade unjudged passages of a set. Raises BadInput if it
    does not exist for this model, prompt and `policy`, or agreement with people is not shown.
    """
    model = engine.llm().model
    record = records.read(engine.settings.home, of, name, model)
    why = words.not_calibrated(record, model, policy, name)
    if record is None or why is not None:
        raise BadInput(str(why))
    if not record.shown:
        raise BadInput(
            f"the judge {model} may not grade unjudged passages of {name}: {words.refusal(record)}. "
            f"{words.agreement(record)} {words.leaves_open(record)}"
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
    labelled: LabelledSet,
    outcomes: Outcomes,
    record: JudgeRecord,
    cancel: threading.Event,
    progress: Progress = lambda _done, _of: None,
) -> Filled | None:
    """Grade what people left unjudged; None once `cancel` is set. What was asked before is cached."""
    wanted, filled = unjudged(labelled, outcomes), Filled()
    texts = corpus.by_ids(sorted({passage for _, _, passage in wanted}))
    judging = Judging(engine, corpus, record.policy, record.relevant_from, cancel)
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
            filled.grades.setdefault(question, {})[passage] = graded(score, record.bounds)
    filled.unscored, filled.why = judging.unscored, judging.why
    progress(len(wanted), len(wanted))
    return filled


def block(
    labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str], record: JudgeRecord, filled: Filled
) -> dict[str, Any]:
    """Return the part "judge" of metrics.json: whose judgement, and both ends of each metric for each route.

    Both ends are means over the same questions, those that people found something relevant for.
    """
    asked = [q.id for q in labelled.questions if labelled.labelled(q.id)]
    ends: Mapping[str, Qrels] = {IRRELEVANT: {}, JUDGED: filled.grades}
    at = labelled.relevant_from
    means = {
        route: {name: _means(labelled, outcomes, route, asked, more) for name, more in ends.items()}
        for route in routes
    }
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
    record: JudgeRecord,
    *,
    out: Path | None,
    cancel: threading.Event,
    progress: Progress,
) -> dict[str, Any]:
    """Return the figures of an evaluation with the part "judge", written to `out` again; without it, and
    "interrupted", once `cancel` is set.
    """
    filled = fill(engine, engine.corpus(figures["corpus"]), labelled, outcomes, record, cancel, progress)
    if filled is None:
        return {**figures, "interrupted": True}
    whole = {**figures, "judge": block(labelled, outcomes, list(figures["routes"]), record, filled)}
    if filled.why:
        whole["warnings"] = [*figures["warnings"], f"the judge gave some passages no grade: {filled.why}"]
    if out is not None:
        report.write(out, whole, labelled, outcomes)
    return whole


def _means(
    labelled: LabelledSet, outcomes: Outcomes, route: str, asked: Sequence[str], more: Qrels
) -> dict[str, float]:
    """Return a route's mean of each metric, or {} if it ended well at no question."""
    values = route_values(labelled, outcomes, route, questions=asked, metrics=RANGED, more=more)
    return {name: float(np.mean([one[name] for one in values.values()])) for name in RANGED} if values else {}


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
