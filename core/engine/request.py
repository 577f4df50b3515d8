"""A request to the engine, and its validation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from core.corpus.index import Corpus
from core.domain.errors import BadInput
from core.domain.filters import Filter, read_filters
from core.domain.types import AnswerStyle, Query, Remembered, Turn
from core.routes.declare import Route

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

    query: Query
    routes: tuple[Route, ...]  # as asked for
    parameters: Mapping[str, Mapping[str, Any]]
    answered: frozenset[str]
    corpus: str
    opening: Future[Corpus]
    web: bool  # whether a web search is wanted
    warnings: tuple[str, ...]
    session: str = ""
    memory: tuple[Remembered, ...] = ()  # what was said before the question, as it was when the run began
    by_model: bool = True  # whether answers are written by the language model


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
