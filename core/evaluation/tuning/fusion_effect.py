"""The effect of a changed fusion on the metrics: of one question, and of all labelled ones of a batch run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.analysis.metrics import by_question, titled
from core.analysis.what_if.fusion import Changes, ReplayedFusion, counterpart, outcome, recompute
from core.domain.types import Scored
from core.evaluation import effects
from core.evaluation.finding import Finding, compared
from core.evaluation.tuning.batch_run import BatchRun, counted

SHOWN = ("ndcg@10", "recall@10", "recall@100", "mrr@10")
DEPTH = 100  # no metric shown looks further
Values = Mapping[str, Mapping[str, float]]  # question -> metric -> value


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a batch run: the step to change, None if the run has no such step, and the ranking."""

    fusion: ReplayedFusion | None
    hits: Scored


@dataclass(frozen=True, slots=True)
class Base:
    """A route over the labelled questions as it ran: what is changed, and the metrics before.

    `ranks`: the rankings are the route's, else those of the step, because later steps order them again.
    """

    survey: BatchRun
    ranks: bool
    asked: Mapping[str, Asked]
    before: Values
    failed: int
    unlabelled: int


def base(survey: BatchRun, route: str, fusion: ReplayedFusion, *, ranks: bool) -> Base:
    """Return the questions of a finished `survey` at which `route` can be changed as `fusion` of another run
    was.
    """
    labelled = survey.labelled
    asked: dict[str, Asked] = {}
    failed = 0
    known = [question.id for question in labelled.questions if labelled.labelled(question.id)]
    for id in known:
        result = survey.results.get(id, {}).get(route)
        if result is None or result.status != "ok":
            failed += 1
            continue
        step = counterpart(result, fusion, ranks=ranks)
        hits = tuple((hit.passage.id, hit.score) for hit in result.hits)
        if step is not None and not ranks:
            hits = step.span.hits or ()
        asked[id] = Asked(step, counted(labelled, id, hits)[:DEPTH])
    rankings = {id: one.hits for id, one in asked.items()}
    before = _measured(survey, rankings)
    return Base(survey, ranks, asked, before, failed, len(labelled.questions) - len(known))


def after(base: Base, route: str, changes: Changes, ids: Sequence[str]) -> Values:
    """Return the metrics of questions with `changes`; those it does not move keep theirs."""
    moved: dict[str, Scored] = {}
    for id in ids:
        one = base.asked[id]
        if one.fusion is None:
            continue
        hits = recompute(one.fusion, changes)
        if base.ranks:
            hits = outcome(base.survey.results[id][route], one.fusion, hits).hits or ()
        hits = counted(base.survey.labelled, id, hits)[:DEPTH]
        if [id for id, _ in hits] != [id for id, _ in one.hits]:
            moved[id] = hits
    return {**{id: base.before[id] for id in ids}, **_measured(base.survey, moved)}


def compare(before: Values, after: Values) -> list[Finding]:
    """Compare each metric of SHOWN over the questions of `after`: one planned comparison for each metric."""
    found = []
    for name in SHOWN:
        column = {id: after[id][name] - before[id][name] for id in after}
        row = effects.family({name: list(column.values())}).get(name)
        mean = sum(before[id][name] for id in after) / max(1, len(after))
        found.append(compared(row, "the changed route", "the original route", titled(name), mean))
    return found


def _measured(survey: BatchRun, rankings: Mapping[str, Scored]) -> dict[str, Mapping[str, float]]:
    labelled = survey.labelled
    judged = {id: labelled.judged(id) for id in rankings}
    return dict(by_question(judged, rankings, relevant_from=labelled.relevant_from)) if rankings else {}
