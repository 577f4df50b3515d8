"""Traces of MLflow: `Trace.to_dict` and `to_json`, whose spans have ids in hexadecimal or in base64.

Source: mlflow.entities.Trace of MLflow 2.14 to 3.x.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.store.trace_sources.values import FEEDBACK, either, feedback_of, opened, sides

NAME = "MLflow"
_KINDS = {"CHAT_MODEL": "LLM", "PARSER": "CHAIN", "UNKNOWN": None, "MEMORY": "CHAIN"}


def mine(document: Mapping[str, Any]) -> bool:
    """Return True if it is a trace with its info and data."""
    data = opened(document.get("data"))
    return "info" in document and isinstance(data, dict) and isinstance(data.get("spans"), list)


def records(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans; what was assessed is of the first one without a parent."""
    info = opened(document.get("info")) or {}
    trace = str(either(info, "trace_id", "request_id") or "")
    assessed = [_said(one) for one in info.get("assessments") or () if isinstance(one, dict)]
    for span in opened(document["data"])["spans"]:
        if not isinstance(span, dict):
            yield {}
            continue
        context = span.get("context") or {}
        given = {name: opened(value) for name, value in (span.get("attributes") or {}).items()}
        attributes = sides(
            {"input": given.get("mlflow.spanInputs"), "output": given.get("mlflow.spanOutputs")}
        )
        parent = either(span, "parent_id", "parent_span_id") or ""
        if not parent:
            attributes[FEEDBACK], assessed = assessed, []
        kind = str(given.get("mlflow.spanType") or "")
        status = opened(span.get("status"))
        code = str(
            span.get("status_code") or (status.get("code") if isinstance(status, dict) else status) or ""
        )
        message = span.get("status_message") or (status.get("message") if isinstance(status, dict) else "")
        model = either(given, "mlflow.llm.model", "gen_ai.request.model")
        attributes |= {"llm.model_name": str(model)} if model else {}
        yield {
            "trace_id": trace or either(context, "trace_id") or span.get("trace_id"),
            "span_id": either(context, "span_id") or span.get("span_id"),
            "parent_id": parent,
            "name": span.get("name"),
            "kind": _KINDS.get(kind, kind),
            "start": either(span, "start_time", "start_time_unix_nano", "start_time_ns"),
            "end": either(span, "end_time", "end_time_unix_nano", "end_time_ns"),
            "error": str(message or "failed") if code.endswith("ERROR") else None,
            "attributes": attributes,
        }


def _said(one: Mapping[str, Any]) -> dict[str, Any]:
    value = one.get("value")
    for name in ("feedback", "expectation"):
        if isinstance(inner := one.get(name), dict):
            value = inner.get("value")
    source = one.get("source") or {}
    who = either(source, "source_id", "source_type") if isinstance(source, dict) else source
    return feedback_of(NAME, either(one, "assessment_name", "name"), value, None, one.get("rationale"), who)
