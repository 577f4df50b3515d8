"""Exports of other tools as records with OpenInference's names, which `core.store.traces_in` reads.

Sources: Langfuse's public API (TraceWithFullDetails, Observation, Score, IngestionEvent), November 2026; the
run data format of LangSmith's documentation, November 2026; mlflow.entities.Trace of MLflow 2.14 to 3.x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from core.store.trace_sources.values import (
    FEEDBACK,
    either,
    feedback_of,
    fields_of,
    names,
    opened,
    sides,
)

Document = Mapping[str, Any]
Records = Iterator[dict[str, Any]]
_NO_KINDS = ("SPAN", "UNKNOWN")
_TYPES = names("langfuse")


def source_of(document: Document) -> tuple[str, Callable[[Document], Records]] | None:
    """Return the tool that wrote a JSON document and its reader; None for OTLP and OpenInference's own."""
    whole = document["trace"] if isinstance(document.get("trace"), dict) else document
    if (
        isinstance(document.get("observations"), list)
        or isinstance(opened(whole.get("observations")), list)
        or (either(document, "traceId", "trace_id") is not None and document.get("type") in _TYPES)
        or isinstance(document.get("batch"), list)
    ):
        return "Langfuse", _langfuse
    if "run_type" in document and "id" in document:
        return "LangSmith", _langsmith
    data = opened(document.get("data"))
    if "info" in document and isinstance(data, dict) and isinstance(data.get("spans"), list):
        return "MLflow", _mlflow
    return None


def _langfuse(document: Document) -> Records:
    """Yield the observations of a trace, an observation, or a batch of events; the trace above them."""
    if isinstance(document.get("batch"), list):
        yield from _batch(document["batch"])
        return
    given = document.get("trace")
    trace = {**document, **given} if isinstance(given, dict) else document
    observations = opened(either(document, "observations") or trace.get("observations"))
    if observations is None:
        yield from _observation(document)
    else:
        yield from _trace(trace, observations, opened(trace.get("scores")) or [])


def _trace(trace: Document, observations: Any, scores: Any) -> Records:
    """Convert a trace to the span above its observations."""
    root = f"trace {trace.get('id')}"
    inside: list[dict[str, Any]] = []
    for one in observations if isinstance(observations, list) else ():
        if not isinstance(one, dict):
            yield {}
            continue
        parent = either(one, "parentObservationId", "parent_observation_id") or root
        inside += _observation({"traceId": trace.get("id"), **one, "parentObservationId": parent})
    begun = either(trace, "timestamp", "createdAt", "created_at")
    if not inside and begun is None:
        return
    session = either(trace, "sessionId", "session_id")
    attributes = sides(trace.get("input"), trace.get("output"), session=session)
    if user := either(trace, "userId", "user_id"):
        attributes["user.id"] = str(user)
    attributes[FEEDBACK] = [
        feedback_of(
            "Langfuse",
            one.get("name"),
            one.get("value"),
            either(one, "stringValue", "string_value"),
            one.get("comment"),
            either(one, "authorUserId", "author_user_id", "source"),
        )
        for one in scores
        if isinstance(one, dict)
    ]
    yield {
        "trace_id": trace.get("id"),
        "span_id": root,
        "name": trace.get("name"),
        "kind": "CHAIN",
        "start": min((one["start"] for one in inside if one["start"]), key=str, default=begun),
        "end": max((one["end"] for one in inside if one["end"]), key=str, default=begun),
        "attributes": attributes,
    }
    yield from inside


def _observation(record: Document) -> Records:
    kind = str(record.get("type") or "")
    if kind == "EVENT":
        return
    model = either(record, "model", "providedModelName", "provided_model_name")
    used = opened(either(record, "usageDetails", "usage_details", "usage"))
    message = str(either(record, "statusMessage", "status_message") or "failed")
    yield fields_of("langfuse", record) | {
        "kind": None if kind in _NO_KINDS else kind,
        "error": message if record.get("level") == "ERROR" else None,
        "attributes": sides(record.get("input"), record.get("output"), used, model),
    }


def _batch(events: list[Any]) -> Records:
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


def _langsmith(document: Document, trace: str = "", parent: str = "") -> Records:
    """Yield a run, nested by child_runs or flat, and the runs below it."""
    id = str(document["id"])
    order = str(document.get("dotted_order") or "").split(".")[0]
    own = str(document.get("trace_id") or trace or order[-36:] or id)
    about = opened(document.get("extra"))
    about = about if isinstance(about, dict) else {}
    metadata = about.get("metadata") or {}
    asked = about.get("invocation_params") or {}
    model = either(metadata, "ls_model_name") or either(asked, "model", "model_name")
    session = either(metadata, "session_id", "thread_id", "conversation_id")
    attributes = sides(document.get("inputs"), document.get("outputs"), document, model, session)
    stats = opened(document.get("feedback_stats"))
    attributes[FEEDBACK] = [
        feedback_of("LangSmith", name, one.get("avg"), next(iter(one.get("values") or ()), None))
        for name, one in (stats.items() if isinstance(stats, dict) else ())
        if isinstance(one, dict) and one.get("n", 1)
    ]
    above = either(document, "parent_run_id") or parent
    given = {**document, "id": id, "trace_id": own, "parent_run_id": above}
    yield fields_of("langsmith", given) | {"attributes": attributes}
    for child in document.get("child_runs") or ():
        if isinstance(child, dict):
            yield from _langsmith(child, own, id)


def _mlflow(document: Document) -> Records:
    """Yield the spans of `Trace.to_dict` and `to_json`; the first without a parent has what was assessed."""
    info = opened(document.get("info")) or {}
    trace = str(either(info, "trace_id", "request_id") or "")
    assessed = [_assessment(one) for one in info.get("assessments") or () if isinstance(one, dict)]
    for span in opened(document["data"])["spans"]:
        if not isinstance(span, dict):
            yield {}
            continue
        context = span.get("context") or {}
        given = {name: opened(value) for name, value in (span.get("attributes") or {}).items()}
        model = either(given, "mlflow.llm.model", "gen_ai.request.model")
        attributes = sides(given.get("mlflow.spanInputs"), given.get("mlflow.spanOutputs"), model=model)
        parent = either(span, "parent_id", "parent_span_id") or ""
        if not parent:
            attributes[FEEDBACK], assessed = assessed, []
        kind = str(given.get("mlflow.spanType") or "")
        status = opened(span.get("status"))
        status = status if isinstance(status, dict) else {"code": status}
        code = str(span.get("status_code") or status.get("code") or "")
        message = span.get("status_message") or status.get("message")
        yield fields_of("mlflow", {**span, **context}) | {
            **({"trace_id": trace} if trace else {}),
            "parent_id": parent,
            "kind": None if kind in _NO_KINDS else kind,
            "error": str(message or "failed") if code.endswith("ERROR") else None,
            "attributes": attributes,
        }


def _assessment(one: Document) -> dict[str, Any]:
    value = one.get("value")
    for name in ("feedback", "expectation"):
        if isinstance(inner := one.get(name), dict):
            value = inner.get("value")
    source = one.get("source") or {}
    who = either(source, "source_id", "source_type") if isinstance(source, dict) else source
    name = either(one, "assessment_name", "name")
    return feedback_of("MLflow", name, value, None, one.get("rationale"), who)
