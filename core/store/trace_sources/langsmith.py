"""Runs of LangSmith: its SDK's Run as JSON, nested by child_runs or flat, and its bulk export.

Source: the run data format of LangSmith's documentation, November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.store.trace_sources.values import FEEDBACK, either, feedback_of, opened, sides

NAME = "LangSmith"


def mine(document: Mapping[str, Any]) -> bool:
    """Return True if it is a run."""
    return "run_type" in document and "id" in document


def records(document: Mapping[str, Any], trace: str = "", parent: str = "") -> Iterator[dict[str, Any]]:
    """Yield the run and the runs below it."""
    id = str(document["id"])
    order = str(document.get("dotted_order") or "").split(".")[0]
    own = str(document.get("trace_id") or trace or (order[-36:] if order else "") or id)
    about = opened(document.get("extra")) or {}
    about = about if isinstance(about, dict) else {}
    attributes = sides(document)
    model = either(about.get("metadata") or {}, "ls_model_name") or either(
        about.get("invocation_params") or {}, "model", "model_name"
    )
    if model:
        attributes["llm.model_name"] = str(model)
    for side, name in (
        ("prompt_tokens", "llm.token_count.prompt"),
        ("completion_tokens", "llm.token_count.completion"),
    ):
        if document.get(side):
            attributes[name] = document[side]
    session = either(about.get("metadata") or {}, "session_id", "thread_id", "conversation_id")
    if session:
        attributes["session.id"] = str(session)
    stats = opened(document.get("feedback_stats"))
    attributes[FEEDBACK] = [
        feedback_of(NAME, name, one.get("avg"), next(iter(one.get("values") or ()), None))
        for name, one in (stats.items() if isinstance(stats, dict) else ())
        if isinstance(one, dict) and one.get("n", 1)
    ]
    start = document.get("start_time")
    yield {
        "trace_id": own,
        "span_id": id,
        "parent_id": either(document, "parent_run_id") or parent,
        "name": document.get("name"),
        "kind": document.get("run_type"),
        "start": start,
        "end": document.get("end_time") or start,
        "error": document.get("error"),
        "attributes": attributes,
        "service": document.get("session_name"),
    }
    for child in document.get("child_runs") or ():
        if isinstance(child, dict):
            yield from records(child, own, id)
