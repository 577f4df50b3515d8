"""Runs routes over every labelled question of a corpus and keeps their spans, to try other parameters on
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.analysis.metrics import by_question, titled
from core.analysis.run_view import Recorded, below, recorded, top
from core.analysis.what_if.fusion import Changes, ReplayedFusion, counterpart, outcome, recompute
from core.corpus import catalogue
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.domain.outputs import Decision, Grading, WebGrades
from core.domain.program import COMMAND
from core.domain.types import Hit, Passage, RouteResult, Scored
from core.engine import availability
from core.engine.engine import Engine
from core.evaluation import comparison, sets
from core.evaluation.dataset import Found, LabelledSet
from core.evaluation.finding import Finding, compared
from core.evaluation.runner import Plan, ask
from core.routes.registry import pick
from core.steps.evaluate import Act, act

SHOWN = ("ndcg@10", "recall@10", "recall@100", "mrr@10")
DEPTH = 100  # no metric shown looks further
Values = Mapping[str, Mapping[str, float]]  # question -> metric -> value
MODELS = frozenset((Need.LLM, Need.SELF_RAG))
Parameters = Mapping[str, Mapping[str, Any]]  # by route


class Unlabelled(BadInput):
    """A corpus without labelled questions."""


class BatchRun(BackgroundJob):
    """Routes over all labelled questions of a corpus, in a thread of its own; nothing of it is stored.

    `results` grows while it is under way: question id -> route -> result with its spans. Equal steps of its
    routes are shared, as in any run.
    """

    kind = "survey"
    kept = 8  # they hold the spans of all questions

    def __init__(
        self, engine: Engine, corpus: str, fingerprint: str, parameters: Parameters, name: str
    ) -> None:
        self.labelled = labelled(engine, corpus)
        title, count = f"{', '.join(parameters)} over {corpus}", len(self.labelled.questions)
        super().__init__(title, count, engine.settings.home)
        self.corpus, self.fingerprint, self.parameters = corpus, fingerprint, parameters
        self.name = name  # of corpus, routes and parameters: equal for equal ones
        self.results: dict[str, dict[str, RouteResult]] = {}
        self._engine = engine
        self._passages: dict[str, Passage] = {}  # each kept once, however many lists have it

    def _do(self) -> None:
        kept, plan = self._passages, Plan(self.corpus, tuple(self.parameters), self.parameters)
        for question in self.labelled.questions:
            request = replace(plan.request(question.query), models=False)
            run = None if self._cancel.is_set() else ask(self._engine, request, self._cancel.is_set)
            if run is None or self._cancel.is_set():  # asked for while it was begun
                break
            found = self.results[question.id] = {}
            for result in run.results:
                hits = (Hit(kept.setdefault(h.passage.id, h.passage), h.score) for h in result.hits)
                found[result.route] = replace(result, hits=tuple(hits))
            self.finished += 1


def survey(engine: Engine, corpus: str, routes: Parameters) -> BatchRun:
    """Return the batch run of `routes` (name -> parameters, others at their defaults) over the labelled
    questions of `corpus`: the existing run, or a new one. A run that failed or was stopped is restarted.
    Routes that can do without a model or the web do not use it. Raises BadInput if the corpus has no labelled
    questions, or a route needs a model; Unavailable if a route cannot run. The message has instructions.
    """
    check(engine, corpus, routes)
    key, settled, fingerprint = _key(engine, corpus, routes)
    return jobs.begin(
        BatchRun,
        key,
        lambda: BatchRun(engine, corpus, fingerprint, settled, key),
        lambda known: not known.done or known.complete,
    )


def begun(engine: Engine, corpus: str, routes: Parameters) -> BatchRun | None:
    """Return the batch run of `routes` if it was begun in this process, else None; begins none."""
    return jobs.latest(BatchRun, _key(engine, corpus, routes)[0])


def check(engine: Engine, corpus: str, routes: Parameters) -> None:
    """Check that `routes` can be run over all questions. Raises BadInput or Unavailable with the reason."""
    chosen = {route: route.settle(routes[route.name]) for route in pick(list(routes))}
    asking = [route.name for route, settled in chosen.items() if MODELS & {*route.needed(settled)}]
    if asking:
        raise BadInput(
            f"{', '.join(asking)} may call a language model for every question, which takes too long here; "
            f"measure with: {COMMAND} eval {corpus} --routes {','.join(asking)} --split all"
        )
    gaps = availability.missing(engine, corpus)
    for route, settled in chosen.items():
        if lacking := next((gaps[need] for need in route.needed(settled) if need in gaps), None):
            raise Unavailable(f"{route.name} cannot run: {lacking}")


def labelled(engine: Engine, corpus: str) -> LabelledSet:
    """Return the labelled questions of `corpus`, all splits, tied to its passages; errors as `written`."""
    return sets.tie(written(engine, corpus), engine.corpus(corpus))[0]


def written(engine: Engine, corpus: str) -> Found:
    """Return the labelled questions of `corpus`, all splits. Raises Unlabelled saying how to get some."""
    origin = catalogue.source(corpus, settings=engine.settings, known_only=True)
    try:
        return sets.read(origin.name, origin.path, split="all")
    except BadInput as error:
        raise Unlabelled(
            f"corpus {corpus} has no labelled questions, so the effect cannot be measured. Labels "
            f"come as a BEIR folder (queries.jsonl and qrels/*.tsv beside the documents) or from a file: "
            f"{COMMAND} eval {corpus} --questions FILE ({error})"
        ) from None


def seconds(result: RouteResult, count: int) -> float:
    """About how many seconds `count` questions take, each as long as the route here without a model."""
    each = sum(
        span.ms
        for span in top(result)
        if not any(one.kind == "LLM" or one.calls for one in below(result, span))
    )
    return count * each / 1000


def counted(labelled: LabelledSet, question: str, hits: Scored) -> Scored:
    """`hits` in terms of the labels, without the question's own passage if the set's rule drops it."""
    if labelled.drop_self and question not in labelled.qrels.get(question, {}):
        hits = tuple(hit for hit in hits if hit[0] != question)
    return tuple(labelled.of_passages(question, hits))


def _key(engine: Engine, corpus: str, routes: Parameters) -> tuple[str, Parameters, str]:
    """Return the name of a batch run, its routes with all their parameters, and the corpus' fingerprint."""
    settled = {route.name: route.settle(routes[route.name]) for route in pick(list(routes))}
    fingerprint = engine.corpus(corpus).fingerprint
    named = sorted((name, dict(parameters)) for name, parameters in settled.items())
    return json.dumps([str(engine.settings.home), corpus, fingerprint, named]), settled, fingerprint


@dataclass(frozen=True, slots=True)
class ChangedQuestion:
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
    asked: Mapping[str, ChangedQuestion]
    before: Values
    failed: int
    unlabelled: int


def base(survey: BatchRun, route: str, fusion: ReplayedFusion, *, ranks: bool) -> Base:
    """Return the questions of a finished `survey` at which `route` can be changed as `fusion` of another run
    was.
    """
    labelled = survey.labelled
    asked: dict[str, ChangedQuestion] = {}
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
        asked[id] = ChangedQuestion(step, counted(labelled, id, hits)[:DEPTH])
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
        row = comparison.family({name: list(column.values())}).get(name)
        mean = sum(before[id][name] for id in after) / max(1, len(after))
        found.append(compared(row, "the changed route", "the original route", titled(name), mean))
    return found


def _measured(survey: BatchRun, rankings: Mapping[str, Scored]) -> dict[str, Mapping[str, float]]:
    labelled = survey.labelled
    judged = {id: labelled.judged(id) for id in rankings}
    return dict(by_question(judged, rankings, relevant_from=labelled.relevant_from)) if rankings else {}


SPENT = ("replace it by the web", "knowledge gap")  # actions that go on without the passages graded


def follows(result: RouteResult, grading: Recorded[Grading], verdict: Grading) -> Act | None:
    """Return the route's action on `verdict` if it acted on this grading, or None if it did not.

    A route that trusted its search never asked beyond: what that would bring is not known, and taken to be
    there and to be trusted.
    """
    for span in result.spans:
        acted = any(link.arg == "verdict" and link.span == grading.span.id for link in span.links)
        if acted and isinstance(span.output, Decision):
            given = {link.span for link in span.links if link.arg == "web"}  # the web results it acted on
            web = [one.output.grades for one in recorded(result.spans, WebGrades) if one.span.id in given]
            return act(verdict, str(span.args.get("lack", "")), web[0] if web else None)
    return None
