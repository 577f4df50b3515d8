"""Asks every question of a labelled set through the engine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, get_args

from core.analysis.answers import checked
from core.analysis.run_view import below
from core.domain import outputs
from core.domain.filters import Filter
from core.domain.machine import Machine, here
from core.domain.ranked import Ids
from core.domain.relevance import is_unmatched
from core.domain.types import AnswerStyle, RouteResult, Run, Span
from core.engine.job import Job
from core.engine.request import Request
from core.evaluation.counting import document_of
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Asked, Outcome, Outcomes, Taken
from core.steps.decisions import FORCED

if TYPE_CHECKING:
    from core.backends.workers.place import WorkPlace
    from core.evaluation.outcome import Journal
    from core.store import Store

Progress = Callable[[int, int], None]  # (questions done, of how many)
Ended = Callable[[], bool]  # whether to stop
After = Callable[[Question, Mapping[str, Outcome]], bool]  # False: it was stopped
LOOK_S = 0.2  # between looks at whether to stop
UNWRITTEN = 8  # runs that may wait to be written: each holds megabytes
CLASSIFY = "classify by features"  # the step whose decision is a question's class
DISPATCH = "choose the route"  # the step whose decision is the route that a router chose
_SAID = {CLASSIFY: "class", DISPATCH: "route"}


class Course(TypedDict, total=False):
    """Options for asking an evaluation's questions; see core.evaluation.experiment.perform."""

    fresh: bool
    retry: bool
    progress: Progress
    warn: Callable[[str], None]
    ended: Ended
    workers: WorkPlace | None


class Asks(Protocol):
    """The engine method that asking questions uses."""

    def start(self, request: Request, /) -> Job: ...


class Elsewhere(Protocol):
    """A place that asks questions in other processes; see core.evaluation.spread."""

    def ask(
        self, questions: Sequence[Question], plan: Plan, warn: Callable[[str], None], ended: Ended, /
    ) -> Iterator[tuple[Question, Run, Machine]]: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for every question: the corpus, the routes and how they are run."""

    corpus: str
    routes: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timing: Literal["shared", "isolated"] = "shared"
    style: AnswerStyle | None = None  # how every route writes an answer; None: none is asked for
    draw: int = 0  # see core.engine.request.Request
    forced: Mapping[str, str] = field(default_factory=dict)  # the same
    where: tuple[Filter, ...] = ()  # the same


def run(
    engine: Asks,
    labelled: LabelledSet,
    plan: Plan,
    *,
    journal: Journal | None = None,
    runs: Store | None = None,
    progress: Progress = lambda _done, _total: None,
    warn: Callable[[str], None] = lambda _warning: None,
    ended: Ended = lambda: False,
    after: After | None = None,
    workers: Elsewhere | None = None,
) -> tuple[Outcomes, bool]:
    """Every question's outcome, in order, and whether all were asked (False: it was `ended` or interrupted).

    A question finished in an earlier run of `journal` is not asked again. Runs with their spans go to `runs`.
    `after` is called with each question that is finished, those of an earlier run too, before the next.
    With `workers` they ask: questions then end in any order. Raises what Engine.start raises.
    """
    done = dict(journal.done) if journal else {}
    outcomes = {q.id: done[q.id] for q in labelled.questions if q.id in done}
    ids = Ids()

    def finished(question: Question, asked: Run, on: Machine) -> None:
        """Keep it before anything else is asked."""
        if runs is not None:
            runs.save(asked)
            if len(outcomes) % UNWRITTEN == 0:
                runs.flush()
        outcomes[question.id] = outcomes_of(asked, question, labelled, ids, kept=runs is not None, on=on)
        if journal:
            journal.add(question.id, outcomes[question.id])

    if workers is not None:
        left = [question for question in labelled.questions if question.id not in outcomes]
        progress(len(outcomes), len(labelled.questions))
        for one in workers.ask(left, plan, warn, ended):
            finished(*one)
            progress(len(outcomes), len(labelled.questions))
        if len(outcomes) < len(labelled.questions):
            return outcomes, False
    for number, question in enumerate(labelled.questions):
        if question.id not in outcomes:
            progress(number if after else len(outcomes), len(labelled.questions))
            asked = None if ended() else ask(engine, question, plan, warn, ended)
            if asked is None:
                return outcomes, False
            finished(question, asked, here())
        if after is not None and not after(question, outcomes[question.id]):
            return outcomes, False
    progress(len(outcomes), len(labelled.questions))
    return {question.id: outcomes[question.id] for question in labelled.questions}, True


def ask(
    engine: Asks, question: Question, plan: Plan, warn: Callable[[str], None], ended: Ended
) -> Run | None:
    """Return the finished run of one question; None if it was stopped before its end."""
    request = Request(
        question.query,
        plan.corpus,
        plan.routes,
        plan.parameters,
        timing=plan.timing,
        answers="all" if plan.style else "none",
        style=plan.style or AnswerStyle(),
        stored=False,
        draw=plan.draw,
        forced=plan.forced,
        where=plan.where,
    )
    job = engine.start(request)
    try:
        while True:
            try:
                found = job.wait(LOOK_S)
                break
            except TimeoutError:
                if ended():
                    job.cancel()
                    return None
    except KeyboardInterrupt:
        job.cancel()
        return None
    for warning in job.warnings:
        warn(warning)
    return found


def outcomes_of(
    asked: Run, question: Question, labelled: LabelledSet, ids: Ids, *, kept: bool, on: Machine | None = None
) -> dict[str, Outcome]:
    """Return the outcome of each route of a run; with the run's id if it is `kept`, and the machine that it
    was asked `on` (None: this one).
    """
    on = on or here()
    own = question.id if labelled.drop_self else None
    by = {result.route: result for result in asked.results}
    return {
        route: replace(
            _outcome(result, by, own, labelled, ids),
            run=asked.id if kept else "",
            began=asked.created,
            machine=on.kind,
            host=on.host,
        )
        for route, result in by.items()
    }


def _outcome(
    result: RouteResult, run: Mapping[str, RouteResult], own_id: str | None, labelled: LabelledSet, ids: Ids
) -> Outcome:
    """Summarise `result`; the question's own passage (`own_id`) is no result unless it is judged."""
    drop = own_id if own_id is not None and own_id not in labelled.qrels.get(own_id, {}) else None
    tokens = [span.tokens for span in result.spans if span.tokens is not None]
    # Of a pipeline of the user's: its reply; the time of one from a file is in it, or unknown.
    reply = next((one.output for one in result.spans if isinstance(one.output, outputs.External)), None)
    ms = result.ms
    if reply is not None and reply.door == "file":
        ms = math.nan if reply.inside_ms is None else reply.inside_ms
    answer = checked(result)
    return Outcome(
        result.status,
        ms,
        ids.ranked((hit.passage.id, hit.score) for hit in result.hits if hit.passage.id != drop),
        sum(span.calls for span in result.spans),
        sum(used.prompt for used in tokens),
        sum(used.completion for used in tokens),
        result.error or result.answer_error,
        result.answer,
        result.citations,
        result.abstained,
        wrong=answer.written.wrong if answer else (),
        uncited=len(answer.written.uncited) if answer else 0,
        shown=answer.written.shown if answer else (),
        said=_said(result.spans),
        decided=tuple(taken for span in result.spans if (taken := _taken(span))),
        asked=tuple(call for span in result.spans for call in _asked(span, run)),
        steps=len(result.spans),
        returned=tuple(hit for hit in reply.returned if hit.ids != (drop,)) if reply is not None else (),
        documents={
            hit.passage.id: hit.passage.doc_id
            for hit in result.hits
            if document_of(hit.passage.id) != hit.passage.doc_id and not is_unmatched(hit.passage.id)
        },
    )


def _taken(span: Span) -> Taken | None:
    """Return a step's decision, or None if it decided nothing."""
    output = span.output
    if not isinstance(output, get_args(outputs.Decided)) or not output.decision:
        return None
    score = (output.score, output.threshold) if isinstance(output, outputs.Decision) else (None, None)
    return Taken(span.name, output.decision, *score, forced=str(span.attributes.get(FORCED, "")))


def _asked(span: Span, run: Mapping[str, RouteResult]) -> list[Asked]:
    """Return the model call that a span is, or those that another route of the run made for it."""
    if isinstance(span.output, outputs.Reply):
        prompt = f"{span.args.get('prompt')}\0{span.args.get('max_tokens')}\0{span.args.get('text')}"
        return [Asked(hashlib.sha256(prompt.encode()).hexdigest()[:16], span.ms, span.output.made)]
    route, _, id = (span.shared_with or "").partition("#")
    if not span.calls or route not in run:
        return []
    owner = next((one for one in run[route].spans if one.id == int(id)), None)
    inside = below(run[route], owner)[1:] if owner is not None else []
    return [call for one in inside for call in _asked(one, run)]


def _said(spans: Sequence[Span]) -> dict[str, str]:
    """Return the class assigned to a question and the reason, the chosen route, the last SQL, and the route's
    last decision or the reason for it.
    """
    said: dict[str, str] = {}
    for span in spans:
        if isinstance(span.output, outputs.TableResult):
            said["sql"] = span.output.sql
        decided = _decided(span.output) if span.parent is None else ""
        said |= {_SAID.get(span.name, "stop"): decided} if decided else {}
        if decided and span.name == CLASSIFY and isinstance(span.output, outputs.Decision):
            said["features"] = span.output.why
    return said


def _decided(output: outputs.Output) -> str:
    """Return the reason for the decision, else the decision, or "" without one."""
    match output:
        case outputs.Decision():
            return str(output.details.get("reason") or output.decision)
        case outputs.Grading(round=judged):
            return (judged.reason if judged else None) or output.decision
        case outputs.Critique() | outputs.DraftChoice() | outputs.Selection():
            return output.reason or output.decision
        case outputs.SegmentTree() | outputs.TableResult():
            return output.decision
    return ""
