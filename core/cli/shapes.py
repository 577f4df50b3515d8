"""The JSON of a run: a shape that scripts rely on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from core.domain.outputs import document
from core.domain.types import Link, Passage, RouteResult, Run, Span


def run_document(run: Run) -> dict[str, Any]:
    """The whole run as plain JSON values; times in milliseconds, hits best first."""
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
        "answer": result.answer,
        "citations": list(result.citations),
        "abstained": result.abstained,
        "answer_status": result.answer_status,
        "answer_error": result.answer_error,
        "answer_span": result.answer_span,
        "origin": None if result.origin is None else _link(result.origin),
        "spans": [_span(span, passages) for span in result.spans],
        "knobs": dict(result.parameters),
        "error": result.error,
    }


def _span(span: Span, passages: Mapping[str, Passage]) -> dict[str, Any]:
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
        "cost": span.cost,
    }


def _link(link: Link) -> dict[str, Any]:
    """What of which step an argument is; `span` null where the route made it by hand."""
    return {"arg": link.arg, "span": link.span, "start": link.start, "size": link.size}


def _scored(hits: Iterable[tuple[str, float]], passages: Mapping[str, Passage]) -> list[dict[str, Any]]:
    return [
        {"id": id, "score": score, "title": passages[id].title if id in passages else None}
        for id, score in hits
    ]
