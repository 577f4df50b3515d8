"""The JSON of a run: a shape that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from core.analysis.rank_overlap import halves
from core.domain.outputs import Reply, document
from core.domain.types import Link, Passage, RouteResult, Run, Span


def run_document(run: Run) -> dict[str, Any]:
    """Convert the whole run to plain JSON values; times in milliseconds, hits best first."""
    return {
        "run_id": run.id,
        "created": run.created,
        "status": run.status,
        "query": run.query.text,
        "history": [asdict(turn) for turn in run.query.history],
        "corpus": run.corpus,
        "fingerprint": run.fingerprint,
        "settings": dict(run.settings),
        "wall_ms": run.wall_ms,
        "results": [_result(result, run.passages) for result in run.results],
    }


def _result(result: RouteResult, passages: Mapping[str, Passage]) -> dict[str, Any]:
    models, thought = _models(result), _thought(result)
    return {
        "route": result.route,
        "title": result.title,
        "status": result.status,
        "ms": result.ms,
        "start_ms": result.start_ms,
        "wall_ms": result.wall_ms,
        "hits": [
            {
                "id": hit.passage.id,
                "score": hit.score,
                "title": hit.passage.title,
                "doc_id": hit.passage.doc_id,
                "text": hit.passage.text,
            }
            for hit in result.hits
        ],
        "found_by": asdict(found) if (found := halves(result)) is not None else None,
        "answer": result.answer,
        "citations": list(result.citations),
        "abstained": result.abstained,
        "answer_status": result.answer_status,
        "answer_error": result.answer_error,
        "answer_span": result.answer_span,
        "origin": None if result.origin is None else _link(result.origin),
        "spans": [_span(span, passages, models, thought) for span in result.spans],
        "parameters": dict(result.parameters),
        "error": result.error,
    }


def _models(result: RouteResult) -> dict[int, str]:
    """By span: the model that was asked in it or in a step within it, the last one."""
    found: dict[int, str] = {}
    for span in reversed(result.spans):  # steps stand before what was done in them
        if isinstance(span.output, Reply) and span.output.model:
            found[span.id] = span.output.model
        if span.parent is not None and span.id in found:
            found.setdefault(span.parent, found[span.id])
    return found


def _thought(result: RouteResult) -> dict[int, int]:
    """By span: the tokens that models reasoned with in it and in the steps within it."""
    found: dict[int, int] = {}
    for span in reversed(result.spans):
        own = span.tokens.reasoning if span.tokens else found.get(span.id, 0)
        found[span.id] = own
        if span.parent is not None:
            found[span.parent] = found.get(span.parent, 0) + own
    return found


def _span(
    span: Span, passages: Mapping[str, Passage], models: Mapping[int, str], thought: Mapping[int, int]
) -> dict[str, Any]:
    return {
        "id": span.id,
        "parent": span.parent,
        "name": span.name,
        "kind": span.kind,
        "start_ms": span.start_ms,
        "ms": span.ms,
        "inputs": {**span.args, **span.attributes},
        "args": dict(span.args),
        "attributes": dict(span.attributes),
        "links": [_link(link) for link in span.links],
        "set_by": dict(span.set_by),
        "output": document(span.output),
        "hits": None if span.hits is None else _scored(span.hits, passages),
        "shared_with": span.shared_with,
        "cached": span.cached,
        "error": span.error,
        "tokens": asdict(span.tokens) if span.tokens else None,
        "calls": span.calls,
        "model": models.get(span.id),
        "reasoning_tokens": thought.get(span.id, 0),
        "cost": span.cost,
    }


def _link(link: Link) -> dict[str, Any]:
    """Convert a link to JSON; `span` is null if the route created the argument itself."""
    return {"arg": link.arg, "span": link.span, "start": link.start, "size": link.size}


def _scored(hits: Iterable[tuple[str, float]], passages: Mapping[str, Passage]) -> list[dict[str, Any]]:
    return [
        {"id": id, "score": score, "title": passages[id].title if id in passages else None}
        for id, score in hits
    ]
