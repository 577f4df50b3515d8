"""Tries a pipeline that is not ours: one question, what it replied, and how that matches a corpus."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from core.corpus.passage_matching import Matched
from core.domain import people
from core.domain.errors import RouteScopeError, Unavailable, describe
from core.domain.external import PipelineReply
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import clean
from core.routes.registry import pipelines


@dataclass(frozen=True, slots=True)
class Trial:
    """One call: the reply as it was read and its hits matched, or the error. `ms` as measured here."""

    when: str  # ISO 8601, UTC
    question: str
    corpus: str
    reply: PipelineReply | None = None
    matched: Matched | None = None
    ms: float | None = None
    inside_ms: float | None = None
    error: str = ""


_tried: dict[str, Trial] = {}


def outcome(name: str) -> Trial | None:
    """Return the last trial of a pipeline in this process."""
    return _tried.get(name)


def attempt(engine: Engine, name: str, question: str, corpus: str, cancel: threading.Event) -> Trial:
    """Call a pipeline, ignoring stored replies, and remember the outcome. Raises BadInput for an invalid
    question, and Cancelled on a stop.
    """
    people.require("ask a model")  # it may call one, and costs whoever runs it
    query, _ = clean(Query(question))
    when = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        pipeline = pipelines().get(name)
        if pipeline is None:
            raise Unavailable(f"pipeline {name} is not set up any more")
        call = engine.external(name, "record")
        given = call.ask(query, pipeline.k, pipeline.timeout_s, cancel)
        matched = engine.corpus(corpus).matcher.match(given.reply.hits)
        made = Trial(when, query.text, corpus, given.reply, matched, given.ms, given.inside_ms)
    except RouteScopeError as error:
        if cancel.is_set():
            raise
        made = Trial(when, query.text, corpus, error=describe(error))
    _tried[name] = made
    return made
