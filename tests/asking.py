"""One question asked of one route over a small corpus in memory, and what its steps recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.domain.types import AnswerStyle, Query, RouteResult, Span
from core.engine.request import Request
from tests.fakes import FakeEngine, Reply, ScriptedLLM


def ask(
    home: Path,
    route: str,
    question: str | Query,
    replies: Mapping[str, Reply] | ScriptedLLM | None = None,
    *,
    engine: FakeEngine | None = None,
    options: Mapping[str, Any] | None = None,
    answers: Any = "none",
    style: AnswerStyle | None = None,
    forced: Mapping[str, str] | None = None,
    **parameters: Any,
) -> tuple[RouteResult, Any]:
    """Return the route's result and the model that was asked; `options` are those of `FakeEngine`."""
    llm = replies if isinstance(replies, ScriptedLLM) else ScriptedLLM(replies or {})
    engine = engine or FakeEngine(home, llm=llm, **(options or {}))
    query = Query(question) if isinstance(question, str) else question
    request = Request(
        query,
        "tiny",
        (route,),
        {route: parameters},
        answers=answers,
        style=style or AnswerStyle(),
        forced=forced or {},
    )
    return engine.ask(request).results[0], engine.fake_llm


def ids(result: RouteResult) -> list[str]:
    """Return the ids of the passages, best first."""
    return [hit.passage.id for hit in result.hits]


def scores(result: RouteResult) -> dict[str, float]:
    """Return the score of each passage, best first."""
    return {hit.passage.id: hit.score for hit in result.hits}


def spans(result: RouteResult, name: str) -> list[Span]:
    """Return the spans whose name starts with `name`."""
    return [span for span in result.spans if span.name.startswith(name)]


def span(result: RouteResult, name: str) -> Any:
    """Return the first span whose name starts with `name`."""
    return spans(result, name)[0]


def outputs(result: RouteResult, name: str) -> list[Any]:
    """Return the outputs of the spans whose name starts with `name`."""
    return [one.output for one in spans(result, name)]


def prompts(llm: ScriptedLLM) -> list[str]:
    """Return the names of the prompts that were sent, in order."""
    return [request.prompt for request in llm.requests]
