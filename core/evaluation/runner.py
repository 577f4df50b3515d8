"""Asks every question of a labelled set through the engine, in this process or by workers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from core.analysis.answers import checked
from core.analysis.run_view import below
from core.backends import fusion_weights
from core.backends.external import run_files
from core.backends.workers.place import WorkPlace
from core.corpus.helpers import Helpers
from core.domain import outputs
from core.domain.errors import BadInput, Cancelled, RouteScopeError, Unavailable
from core.domain.filters import Filter
from core.domain.machine import Machine, here
from core.domain.needs import Need
from core.domain.pipelines import Pipeline
from core.domain.ranked import Ids
from core.domain.relevance import is_unmatched
from core.domain.settings import Settings
from core.domain.types import AnswerStyle, Query, RouteResult, Run, Span
from core.engine.availability import missing
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation.counting import document_of
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.outcome import Asked, Journal, Outcome, Outcomes, Taken
from core.routes.registry import add, pick, pipelines
from core.steps.decisions import FORCED
from core.store import Store
from core.store.codec import dumps, from_document, to_bytes, to_document, to_text

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

    def request(self, query: Query) -> Request:
        """Return the request for one question."""
        return Request(
            query,
            self.corpus,
            self.routes,
            self.parameters,
            timing=self.timing,
            answers="all" if self.style else "none",
            style=self.style or AnswerStyle(),
            stored=False,
            draw=self.draw,
            forced=self.forced,
            where=self.where,
        )


def run(
    engine: Engine,
    labelled: LabelledSet,
    plan: Plan,
    *,
    journal: Journal | None = None,
    runs: Store | None = None,
    progress: Progress = lambda _done, _total: None,
    warn: Callable[[str], None] = lambda _warning: None,
    ended: Ended = lambda: False,
    after: After | None = None,
    workers: Spread | None = None,
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
            asked = None if ended() else ask(engine, plan.request(question.query), ended, warn)
            if asked is None:
                return outcomes, False
            finished(question, asked, here())
        if after is not None and not after(question, outcomes[question.id]):
            return outcomes, False
    progress(len(outcomes), len(labelled.questions))
    return {question.id: outcomes[question.id] for question in labelled.questions}, True


def ask(
    engine: Engine, request: Request, ended: Ended, warn: Callable[[str], None] = lambda _warning: None
) -> Run | None:
    """Return the finished run of a request; None if it was stopped before its end."""
    job = engine.start(request)
    with suppress(KeyboardInterrupt):
        while True:
            with suppress(TimeoutError):
                found = job.wait(LOOK_S)
                for warning in job.warnings:
                    warn(warning)
                return found
            if ended():
                break
    job.cancel()
    return None


def outcomes_of(
    asked: Run, question: Question, labelled: LabelledSet, ids: Ids, *, kept: bool, on: Machine | None = None
) -> dict[str, Outcome]:
    """Return the outcome of each route of a run; with the run's id if it is `kept`, and the machine that it
    was asked `on` (None: this one).
    """
    on = on or here()
    own = question.id if labelled.drop_self else None
    by = {result.route: result for result in asked.results}
    where: dict[str, Any] = {"run": asked.id if kept else "", "began": asked.created}
    where |= {"machine": on.kind, "host": on.host}
    return {route: replace(_outcome(result, by, own, labelled, ids), **where) for route, result in by.items()}


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
    """Return the class assigned to a question and the features that decided it, the route chosen for it, and
    the last SQL.
    """
    said: dict[str, str] = {}
    for span in spans:
        if isinstance(span.output, outputs.TableResult):
            said["sql"] = span.output.sql
        elif isinstance(span.output, outputs.Decision) and span.parent is None and span.name in _SAID:
            said[_SAID[span.name]] = str(span.output.details.get("reason") or span.output.decision)
            if span.name == CLASSIFY:
                said["features"] = span.output.why
    return said


TASK = f"{__name__}:asked"
CHOSEN = ("calibrations", "routers", "evaluators", fusion_weights.FOLDER)  # folders of a home
Answered = tuple[Question, Run, Machine]


class Spread(Helpers):
    """The workers of a place, started or connected to when the first question is asked."""

    def __init__(self, place: WorkPlace, engine: Engine) -> None:
        super().__init__(place, engine.settings)
        self._engine = engine

    def ask(
        self, questions: Sequence[Question], plan: Plan, warn: Callable[[str], None], ended: Ended
    ) -> Iterator[Answered]:
        """Each question with its run and the machine it was asked on, as they come; ends early where it was
        `ended`. Raises BadInput or Unavailable where it cannot be asked there.
        """
        if not questions:
            return
        told = self._told(plan)
        try:
            pool = self._open(ended)
        except Cancelled:  # stopped before any worker was there
            return
        by_id = {question.id: question for question in questions}
        calls = ((one.id, {**told, "question": to_jsonable_python(one.query)}) for one in questions)
        for id, data in pool.each(TASK, calls, ended):
            answer = json.loads(to_text(data))
            for warning in answer["warnings"]:
                warn(warning)
            yield by_id[id], from_document(answer["run"]), Machine(**answer["machine"])

    def _told(self, plan: Plan) -> dict[str, Any]:
        """Return the part of a plan that every worker gets."""
        known = pipelines()
        own = [known[name] for name in plan.routes if name in known]
        if files := [one.name for one in own if run_files.used(one.name) is not None]:
            raise BadInput(f"route {files[0]!r} is a file of replies: evaluate it without workers")
        given = [one for one in own if one.given == "command"]
        if given and not self._place.local:
            name = given[0].name
            raise BadInput(f"route {name!r} was given on the command line; others need [external.{name}] set")
        corpus, gaps = self._engine.corpus(plan.corpus), missing(self._engine, plan.corpus)
        return {
            "plan": to_jsonable_python(plan),
            "fingerprint": corpus.fingerprint,
            "able": sorted({need.name for _, need in _needs(plan) if need not in gaps}),
            "chosen": _chosen(self._engine.settings.home, corpus.name),
            "history": dict(self._engine.route_history(corpus.name)),
            "pipelines": to_jsonable_python(given),
        }


def spread(place: WorkPlace | None, engine: Engine) -> AbstractContextManager[Spread | None]:
    """Return the workers of a place while it is entered, or None for this process."""
    return nullcontext() if place is None else Spread(place, engine)


class _Worker(Engine):
    """The engine of a worker process: it stores nothing, and orders routes by the history of who asks."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.histories: dict[str, Mapping[str, float]] = {}
        self.fit: set[str] = set()  # plans that it was checked for

    def route_history(self, corpus: str) -> Mapping[str, float]:
        """As who asks has it."""
        return self.histories.get(corpus, {})


_workers: dict[int, tuple[Settings, _Worker]] = {}


def asked(settings: Settings, payload: Mapping[str, Any]) -> bytes:
    """In a worker: the run of one question with its spans, as JSON. Raises Cancelled where it is not wanted
    any more.
    """
    from core.backends.workers.inside import watch

    # One engine for all tasks of this process under equal settings, which are then the same object.
    _, engine = _workers.setdefault(id(settings), (settings, _Worker(settings)))
    plan = TypeAdapter(Plan).validate_python(payload["plan"])
    for one in TypeAdapter(list[Pipeline]).validate_python(payload["pipelines"]):
        add(one)
    engine.histories[plan.corpus] = payload["history"]
    _check(engine, plan, payload)
    query = TypeAdapter(Query).validate_python(payload["question"])
    warnings: list[str] = []
    run = ask(engine, plan.request(query), watch(), warnings.append)
    if run is None:
        raise Cancelled("the question is not wanted any more")
    answer = {"run": to_document(run), "warnings": warnings, "machine": asdict(here())}
    return to_bytes(dumps(answer))


def _check(engine: _Worker, plan: Plan, payload: Mapping[str, Any]) -> None:
    """Check once per plan that this worker has everything the plan needs. Raises Unavailable with
    instructions.
    """
    key = json.dumps([payload[name] for name in ("plan", "fingerprint", "able", "chosen")])
    if key in engine.fit:
        return
    where = f"machine {here().host}"
    try:
        corpus = engine.corpus(plan.corpus)
    except RouteScopeError as error:
        home = engine.settings.home
        raise Unavailable(f"{where} has no corpus {plan.corpus} in {home} ({error}); copy it there") from None
    if corpus.fingerprint != payload["fingerprint"]:
        there = f"fingerprint {corpus.fingerprint}, wanted {payload['fingerprint']}"
        raise Unavailable(f"{where} has another corpus {plan.corpus} ({there}); copy the index there")
    if _chosen(engine.settings.home, plan.corpus) != payload["chosen"]:
        what = f"other thresholds or fitted weights for corpus {plan.corpus} in {engine.settings.home}"
        raise Unavailable(f"{where} has {what}; copy the folders {', '.join(CHOSEN)} there")
    engine.embedder(corpus.info.embedder)  # loaded once, and no route's own time
    gaps = missing(engine, plan.corpus)
    for name, need in _needs(plan):
        if need in gaps and need.name in payload["able"]:
            raise Unavailable(f"{where} cannot run {name}: {gaps[need]}")
    engine.fit.add(key)


def _chosen(home: Path, corpus: str) -> str:
    """Return a digest of what people chose or fitted that decides how routes rank, besides parameters."""
    digest = hashlib.sha256()
    of_all = (home / name for name in CHOSEN[:2])
    of_this = (home / "evaluators" / f"{corpus}.json", home / fusion_weights.FOLDER / corpus)
    for place in (*of_all, *of_this):
        for file in [place] if place.is_file() else sorted(place.rglob("*.json")):
            digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _needs(plan: Plan) -> list[tuple[str, Need]]:
    """Return what each of the plan's routes needs with its parameters."""
    chosen = [(route, route.settle(plan.parameters.get(route.name, {}))) for route in pick(list(plan.routes))]
    return [(route.name, need) for route, parameters in chosen for need in route.needed(parameters)]
