"""Asks every question of a labelled set through the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from core.engine import Job, Request
from core.evaluate.dataset import LabelledSet, Question
from core.reading_answers import checked
from core.types import AnswerStyle, RouteResult, Scored, Span, Status

if TYPE_CHECKING:
    from core.evaluate.journal import Journal

Progress = Callable[[int, int], None]  # (questions done, of how many)
CLASSIFY = "classify the question"  # the step whose decision is a question's class


class Asks(Protocol):
    """What is needed of an engine."""

    def start(self, request: Request, /) -> Job: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one route did with one question, as far as an evaluation needs it."""

    status: Status
    ms: float
    hits: Scored = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None
    answer: str | None = None
    citations: tuple[str, ...] = ()
    abstained: bool = False
    wrong: tuple[int, ...] = ()  # numbers of markers that no passage shown has
    uncited: int = 0  # sentences without a citation
    shown: tuple[str, ...] = ()  # passages the answer was written from, where its step tells
    said: Mapping[str, str] = field(default_factory=dict)  # of "class", "sql" and "stop" what its steps tell


Outcomes = dict[str, dict[str, Outcome]]  # question id -> route -> outcome


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of every question."""

    corpus: str
    routes: tuple[str, ...]
    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timing: Literal["shared", "isolated"] = "shared"
    style: AnswerStyle | None = None  # how every route writes an answer; None: none is asked for


def run(
    engine: Asks,
    labelled: LabelledSet,
    plan: Plan,
    *,
    journal: Journal | None = None,
    progress: Progress = lambda _done, _total: None,
    warn: Callable[[str], None] = lambda _warning: None,
) -> tuple[Outcomes, bool]:
    """Every question's outcome, in order, and whether all were asked (False: the user interrupted).

    A question finished in an earlier run of `journal` is not asked again. Raises what Engine.start raises.
    """
    done = dict(journal.done) if journal else {}
    outcomes = {q.id: done[q.id] for q in labelled.questions if q.id in done}
    for question in labelled.questions:
        if question.id in outcomes:
            continue
        progress(len(outcomes), len(labelled.questions))
        try:
            found = _ask(engine, question, plan, warn)
        except KeyboardInterrupt:
            return outcomes, False
        outcomes[question.id] = {
            result.route: _outcome(result, question.id if labelled.drop_self else None, labelled)
            for result in found
        }
        if journal:
            journal.add(question.id, outcomes[question.id])
    progress(len(outcomes), len(labelled.questions))
    return {question.id: outcomes[question.id] for question in labelled.questions}, True


def _ask(engine: Asks, question: Question, plan: Plan, warn: Callable[[str], None]) -> Sequence[RouteResult]:
    request = Request(
        question.query, plan.corpus, plan.routes, plan.knobs, timing=plan.timing,
        answers="all" if plan.style else "none", style=plan.style or AnswerStyle(),
    )  # fmt: skip
    job = engine.start(request)
    try:
        results = job.wait().results
    except KeyboardInterrupt:
        job.cancel()
        raise
    for warning in job.warnings:
        warn(warning)
    return results


def _outcome(result: RouteResult, own_id: str | None, labelled: LabelledSet) -> Outcome:
    """`result` in short; the question's own passage (`own_id`) is no result unless it is judged."""
    drop = own_id if own_id is not None and own_id not in labelled.qrels.get(own_id, {}) else None
    tokens = [span.tokens for span in result.spans if span.tokens is not None]
    return Outcome(
        result.status,
        result.ms,
        tuple((hit.passage.id, hit.score) for hit in result.hits if hit.passage.id != drop),
        sum(span.calls for span in result.spans),
        sum(used.prompt for used in tokens),
        sum(used.completion for used in tokens),
        result.error,
        result.answer,
        result.citations,
        result.abstained,
        **_written(result),
        said=_said(result.spans),
    )


def _written(result: RouteResult) -> dict[str, Any]:
    """What the step that wrote the answer noted about it."""
    found = checked(result)
    if found is None:
        return {}
    shown = [span.inputs["shown"] for span in result.spans
             if span.output == found.text and "shown" in span.inputs]  # fmt: skip
    return {"wrong": found.wrong, "uncited": len(found.uncited), "shown": tuple(shown[-1]) if shown else ()}


def _said(spans: Sequence[Span]) -> dict[str, str]:
    """The class a question was given, the last SQL, and the route's last decision or the reason for it."""
    said: dict[str, str] = {}
    for span in spans:
        told = span.output if isinstance(span.output, Mapping) else {}
        if isinstance(told.get("sql"), str):
            said["sql"] = told["sql"]
        if span.parent is None and isinstance(told.get("decision"), str):
            if span.name == CLASSIFY:
                said["class"] = told["decision"]
            else:
                said["stop"] = str(told.get("reason") or told["decision"])
    return said
