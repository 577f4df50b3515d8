"""Traces and observations of Langfuse: its API, its page's export, its SDKs' events and objects.

Source: Langfuse' public API (TraceWithFullDetails, Observation, Score, IngestionEvent), November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.store.trace_sources.values import FEEDBACK, either, feedback_of, opened, sides
from core.store.trace_sources.vocabulary import VOCABULARY, names

NAME = "Langfuse"
_TYPES = names("langfuse")
_KINDS = {"SPAN": None, "GENERATION": "LLM"}
_TOKENS = VOCABULARY["tokens"]


def mine(document: Mapping[str, Any]) -> bool:
    """Return True if it is a trace, an observation, or a batch of events."""
    whole = document.get("trace") if isinstance(document.get("trace"), dict) else document
    return (
        isinstance(document.get("observations"), list)
        or (isinstance(whole, dict) and isinstance(opened(whole.get("observations")), list))
        or (either(document, "traceId", "trace_id") is not None and document.get("type") in _TYPES)
        or isinstance(document.get("batch"), list)
    )


def records(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the observations, below the trace if it is there."""
    if isinstance(document.get("batch"), list):
        yield from _batch(document["batch"])
        return
    given = document.get("trace")
    trace = {**document, **given} if isinstance(given, dict) else document
    observations = opened(document.get("observations"))
    if observations is None:
        observations = opened(trace.get("observations"))
    if observations is None:
        yield from _observation(document)
        return
    yield from _trace(trace, observations, opened(trace.get("scores")) or [])


def _trace(trace: Mapping[str, Any], observations: Any, scores: Any) -> Iterator[dict[str, Any]]:
    """Convert a trace to the span above its observations."""
    root = f"trace {trace.get('id')}"
    inside = []
    for one in observations if isinstance(observations, list) else ():
        if not isinstance(one, dict):
            yield {}
            continue
        parent = either(one, "parentObservationId", "parent_observation_id") or root
        whole = {"traceId": trace.get("id"), **one, "parentObservationId": parent}
        inside += list(_observation(whole))
    begun = either(trace, "timestamp", "createdAt", "created_at")
    if not inside and begun is None:
        return
    attributes = sides(trace)
    for name, of in (("session.id", ("sessionId", "session_id")), ("user.id", ("userId", "user_id"))):
        if value := either(trace, *of):
            attributes[name] = str(value)
    attributes[FEEDBACK] = [_score(one) for one in scores if isinstance(one, dict)]
    starts = [one["start"] for one in inside if one["start"]]
    ends = [one["end"] for one in inside if one["end"]]
    yield {
        "trace_id": trace.get("id"),
        "span_id": root,
        "parent_id": "",
        "name": trace.get("name"),
        "kind": "CHAIN",
        "start": min(starts, key=str) if starts else begun,
        "end": max(ends, key=str) if ends else begun,
        "error": None,
        "attributes": attributes,
    }
    yield from inside


def _observation(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = str(record.get("type") or "")
    if kind == "EVENT":
        return
    attributes = sides(record)
    model = either(record, "model", "providedModelName", "provided_model_name")
    if model:
        attributes["llm.model_name"] = str(model)
    used = opened(either(record, "usageDetails", "usage_details", "usage"))
    for name, attribute in _TOKENS.items():
        if isinstance(used, dict) and used.get(name) is not None:
            attributes[attribute] = used[name]
    start = either(record, "startTime", "start_time")
    failed = record.get("level") == "ERROR"
    yield {
        "trace_id": either(record, "traceId", "trace_id"),
        "span_id": record.get("id"),
        "parent_id": either(record, "parentObservationId", "parent_observation_id"),
        "name": record.get("name"),
        "kind": _KINDS.get(kind, kind),
        "start": start,
        "end": either(record, "endTime", "end_time") or start,
        "error": str(either(record, "statusMessage", "status_message") or "failed") if failed else None,
        "attributes": attributes,
    }


def _score(one: Mapping[str, Any]) -> dict[str, Any]:
    label = either(one, "stringValue", "string_value")
    who = either(one, "authorUserId", "author_user_id") or one.get("source")
    return feedback_of(NAME, one.get("name"), one.get("value"), label, one.get("comment"), who)


def _batch(events: list[Any]) -> Iterator[dict[str, Any]]:
    """Merge the events that SDKs send: creations with the later updates."""
    traces: dict[str, dict[str, Any]] = {}
    observations: dict[str, dict[str, Any]] = {}
    scores: dict[str, list[Any]] = {}
    for event in events:
        body = event.get("body") if isinstance(event, dict) else None
        if not isinstance(body, dict):
            yield {}
            continue
        kind = str(event.get("type") or "")
        known = {name: value for name, value in body.items() if value is not None}
        if kind.startswith("trace"):
            traces.setdefault(str(body.get("id")), {}).update(known)
        elif kind.startswith("score"):
            scores.setdefault(str(body.get("traceId")), []).append(body)
        else:
            type_ = body.get("type") or kind.split("-")[0].upper()
            observations.setdefault(str(body.get("id")), {"type": type_}).update(known)
    by_trace: dict[str, list[Any]] = {}
    for one in observations.values():
        by_trace.setdefault(str(one.get("traceId")), []).append(one)
    for id, inside in by_trace.items():
        yield from _trace({**traces.get(id, {}), "id": id}, inside, scores.get(id, []))
