"""A request to the engine, and its validation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from core.corpus.index import Corpus
from core.domain.errors import BadInput
from core.domain.filters import Filter, read_filters
from core.domain.types import AnswerStyle, Query, Remembered, Run, Turn
from core.routes.declare import Route
from core.store import Store

MAX_QUESTION = 10_000  # characters
MAX_HISTORY = 50  # turns
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

FILTERS = "filters"  # in the settings of a run: the conditions on its passages, as people write them
Answers = Literal["none", "selected", "all"]
Mode = Literal["live", "record", "replay"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request to run routes."""

    query: Query
    corpus: str
    routes: tuple[str, ...] = ("all",)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by route
    answers: Answers = "none"  # which routes write an answer
    answered: tuple[str, ...] = ()  # names of these routes if `answers` is "selected"
    timing: Literal["shared", "isolated"] = "shared"
    session: str = ""  # name of the session whose earlier turns count and which stores the question
    style: AnswerStyle = field(default_factory=AnswerStyle)  # how answers are written
    stored: bool = True  # if False, only the person who started the run can see it
    models: bool = True  # if False, no language model and no web search is called
    # replaces the setting `llm_mode` in this run; with "replay" a step without a stored answer ends its route
    mode: Mode | None = None
    draw: int = 0  # from 1 on, every model call has another seed
    forced: Mapping[str, str] = field(default_factory=dict)
    where: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A checked request."""

    request: Request
    routes: tuple[Route, ...]  # as asked for
    parameters: Mapping[str, Mapping[str, Any]]
    answered: frozenset[str]
    opening: Future[Corpus]
    web: bool  # whether a web search is wanted
    warnings: tuple[str, ...]
    memory: tuple[Remembered, ...]  # what was said before the question, as it was when the run began


def clean(query: Query) -> tuple[Query, list[str]]:
    """Remove control characters from the question; return it with warnings. Raises BadInput if it is empty or
    too long.
    """
    warnings: list[str] = []

    def scrub(text: str) -> str:
        cleaned, removed = _CONTROL.subn(" ", text.replace("\r\n", "\n"))
        if removed:
            warnings.append(f"{removed} control characters were replaced by spaces")
        return cleaned.strip()

    _bounded("the question", query.text)
    text = scrub(query.text)
    if not text:
        raise BadInput("the question is empty; write at least one word")
    if len(query.history) > MAX_HISTORY:
        raise BadInput(f"the conversation has {len(query.history)} turns; at most {MAX_HISTORY} are allowed")
    for number, turn in enumerate(query.history, 1):
        _bounded(f"turn {number}", turn.text)
    history = tuple(Turn(turn.role, scrub(turn.text)) for turn in query.history)
    return Query(text, tuple(turn for turn in history if turn.text)), warnings


def filters_of(settings: Mapping[str, Any]) -> tuple[Filter, ...]:
    """Return the filters of a stored run. Raises BadInput if an imported run has unreadable ones."""
    stored = settings.get(FILTERS, [])
    if not isinstance(stored, list) or not all(isinstance(one, str) for one in stored):
        raise BadInput(f"the run has filters that cannot be read: {stored!r}")
    return read_filters(stored)


def _bounded(what: str, text: str) -> None:
    """Before anything else is done with it, as that takes longer the longer it is."""
    length = len(text.strip()) - text.count("\r\n")
    if length > MAX_QUESTION:
        raise BadInput(f"{what} has {length:,} characters; at most {MAX_QUESTION:,} are allowed")


def gather(stored: Sequence[Remembered], history: Sequence[Turn]) -> tuple[Remembered, ...]:
    """All that was said before a question, oldest first: what is remembered, then the turns given with it.

    A turn that is remembered and given too counts as given: it was said just before.
    """
    given = {(turn.role, turn.text) for turn in history}
    return (
        *(turn for turn in stored if (turn.role, turn.text) not in given),
        *(Remembered("", number, turn.role, turn.text) for number, turn in enumerate(history, 1)),
    )


def keep(store: Store, session: str, run: Run) -> None:
    """Remember of a finished run the question and the first answer, each once. Raises as Store.remember."""
    answer = next((r.answer for r in run.results if r.answer and r.answer.strip()), None)
    turns = [Turn("user", run.query.text)]
    store.remember(session, turns if answer is None else [*turns, Turn("assistant", answer)], run=run.id)


def keep_answer(store: Store, run: Run) -> None:
    """Remember an answer that was written after the run, unless the conversation has gone on since.

    Raises as Store.recall and Store.remember.
    """
    session = run.settings.get("session")
    if isinstance(session, str) and session:
        stored = store.recall(session)
        if stored and stored[-1].run == run.id:
            keep(store, session, run)


def again(
    run: Run, known: Mapping[str, Route], *, evidence: float | None = None
) -> tuple[Request, list[str]]:
    """Return the request of a stored run, without its session memory, as the session has continued since; and
    what it lacks of the run, as `known` has no such route or parameter.

    `evidence` is the threshold below which no answer is written, which runs do not store; None: the default.
    """
    named = list(dict.fromkeys(texts(run.settings.get("routes")) or [result.route for result in run.results]))
    names = [name for name in named if name in known]
    gone = [f"route {name}" for name in named if name not in known]
    parameters: dict[str, Mapping[str, Any]] = {}
    for result in run.results:
        if result.route in names and result.route not in parameters:
            parameters[result.route], unknown = settled(known[result.route], result.parameters)
            gone += unknown
    answered = [name for name in texts(run.settings.get("answered")) if name in names]
    answers: Any = run.settings.get("answers")
    style = AnswerStyle(
        "extract" if run.settings.get("answers by") == "extract" else "model",
        "best at both ends" if run.settings.get("answer order") == "best at both ends" else "best first",
        *([] if evidence is None else [evidence]),
    )
    try:
        where = filters_of(run.settings)
    except BadInput as error:
        where = ()
        gone.append(str(error))
    request = Request(
        run.query,
        run.corpus,
        tuple(names),
        parameters,
        answers if answers in get_args(Answers) else "none",
        tuple(answered),
        "isolated" if run.settings.get("timing") == "isolated" else "shared",
        style=style,
        mode="replay" if run.settings.get("llm mode") == "replay" else "live",
        where=where,
    )
    return request, gone


def settled(route: Route, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters that the route still has and whose values it still allows, and the names of the
    others.
    """
    kept: dict[str, Any] = {}
    gone = []
    for name, value in given.items():
        try:
            kept[name] = route.settle({name: value})[name]
        except BadInput:
            gone.append(f"parameter {route.name}.{name}")
    return kept, gone


def texts(value: object) -> list[str]:
    """Return the texts of a list; settings of an imported run may contain anything."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []
