"""A run as OTLP JSON: one trace per run, with a span for the run, for each route, and for each step.

Attributes have OpenInference's names, and in addition OpenTelemetry's for generative AI. A step's inputs from
other steps are span links. The spans of a route are placed as if it ran alone, from its start: work that
another route did is included with its full time, and linked to the span that did it.

Sources: OTLP 1.x, JSON encoding (ids in hexadecimal, 64-bit numbers as text); OpenInference semantic
conventions (trace); OpenTelemetry semantic conventions for generative AI (retrieval, embeddings, chat), in
development.
"""

from __future__ import annotations

import hashlib
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from core.domain.errors import BadInput
from core.domain.outputs import Decision, Embedding, Reply, Rerank, Search, document
from core.domain.types import Link, RouteResult, Run, Span

INTERNAL, CLIENT = 1, 3  # SpanKind
OK, ERROR = 1, 2  # StatusCode
EVALUATION = "gen_ai.evaluation.result"
SERVICE = "routescope"
TEXT, JSON = "text/plain", "application/json"
IDS = ("traceId", "spanId", "parentSpanId")
LARGEST = 2**63 - 1  # what a number of the schema holds
Attributes = dict[str, Any]


def to_otlp(run: Run) -> dict[str, Any]:
    """Convert a run to one `TracesData` document, for `/v1/traces` or a file."""
    trace = _Trace(run)
    resource = {"service.name": SERVICE, "openinference.project.name": SERVICE}
    spans = [trace.run_span(), *(span for result in run.results for span in trace.route_spans(result))]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": {"name": "routescope"}, "spans": spans}],
            }
        ]
    }


def to_protobuf(document: Mapping[str, Any]) -> bytes:
    """Convert a document of `to_otlp` to an OTLP request in protobuf; several concatenated ones are one
    request.
    """
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def encoded(value: Any) -> Any:
        """Protobuf's own JSON has ids in base64, OTLP's in hexadecimal."""
        if isinstance(value, dict):
            return {
                key: b64encode(bytes.fromhex(item)).decode() if key in IDS else encoded(item)
                for key, item in value.items()
            }
        return [encoded(item) for item in value] if isinstance(value, list) else value

    found: bytes = ParseDict(encoded(document), ExportTraceServiceRequest()).SerializeToString()
    return found


def from_protobuf(data: bytes) -> dict[str, Any]:
    """Convert an OTLP request in protobuf to its JSON form. Raises BadInput if it is not one."""
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        document: dict[str, Any] = MessageToDict(ExportTraceServiceRequest.FromString(data))
    except (DecodeError, ValueError, RecursionError) as error:
        raise BadInput(f"this is no OTLP protobuf: {error}") from None
    for resource in document.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                span.update({name: b64decode(span[name]).hex() for name in IDS if name in span})
    return document


class _Trace:
    """The context shared by all spans of a run: its id, start and passages."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.id = _hash(32, run.id)
        try:
            self.began = datetime.fromisoformat(run.created).timestamp() * 1000
        except (ValueError, OverflowError):
            raise BadInput(f"run {run.id!r} has no time: it was created {run.created!r}") from None
        self.root = self._span_id("")

    def run_span(self) -> dict[str, Any]:
        """Return the span of the whole run; it ends with its last route as if each ran alone."""
        run = self.run
        ends = [result.start_ms + result.ms for result in run.results]
        attributes: Attributes = {
            "openinference.span.kind": "CHAIN",
            **_value("input", run.query.text),
            "metadata": _json({"run": run.id} | _fields(run, "corpus fingerprint status settings")),
        }
        if session := run.settings.get("session"):
            attributes["session.id"] = str(session)
        return self._span(self.root, None, "ask", 0.0, max([run.wall_ms, *ends]), attributes)

    def route_spans(self, result: RouteResult) -> Iterator[dict[str, Any]]:
        """Yield the spans of the route and its steps."""
        own = self._span_id(result.route)
        attributes: Attributes = {
            "openinference.span.kind": "CHAIN",
            **_value("input", self.run.query.text),
            **({} if result.answer is None else _value("output", result.answer)),
            "metadata": _json(
                _fields(result, "route status parameters citations answer_status answer_error")
            ),
            **self._documents("retrieval.documents", ((h.passage.id, h.score) for h in result.hits)),
        }
        links = self._links(result, [result.origin] if result.origin else [])
        yield self._span(
            own, self.root, result.title, result.start_ms, result.ms, attributes, links, result.error
        )
        for span in result.spans:
            parent = own if span.parent is None else self._span_id(result.route, span.parent)
            yield self._step(result, span, parent)

    def _step(self, result: RouteResult, span: Span, parent: str) -> dict[str, Any]:
        attributes = self._of_step(result, span)
        links = self._links(result, span.links)
        route, _, number = (span.shared_with or "").rpartition("#")
        if number.isdecimal():
            links.append(self._link(self._span_id(route, int(number)), {"routescope.shared_with": route}))
        return self._span(
            self._span_id(result.route, span.id),
            parent,
            span.name,
            result.start_ms + span.start_ms,
            span.ms,
            attributes,
            links,
            span.error,
            CLIENT if isinstance(span.output, Reply) else INTERNAL,
            self._evaluation(result, span),
        )

    def _evaluation(self, result: RouteResult, span: Span) -> list[dict[str, Any]]:
        """Return a decision by score as OpenTelemetry's evaluation event, at the end of its step."""
        one = span.output
        if not isinstance(one, Decision) or one.score is None:
            return []
        found = {"name": span.name, "score.value": float(one.score), "score.label": one.decision}
        found |= {"explanation": one.why}
        at = self.began + _finite(result.start_ms + span.start_ms + span.ms)
        attributes = _attributes({f"gen_ai.evaluation.{part}": value for part, value in found.items()})
        return [{"timeUnixNano": _nano(at), "name": EVALUATION, "attributes": attributes}]

    def _of_step(self, result: RouteResult, span: Span) -> Attributes:
        output = span.output
        by_hand = [{"arg": link.arg, "size": link.size} for link in span.links if link.span is None]
        more = _fields(span, "set_by attributes shared_with cached") | {"made_by_the_route": by_hand}
        asks = isinstance(output, Reply)
        found: Attributes = {
            # a step that asks a model has the call, with its tokens, as a span of its own below it
            "openinference.span.kind": "CHAIN" if span.kind == "LLM" and not asks else span.kind,
            **_value("input", span.args["text"] if asks and "text" in span.args else span.args),
            **_value("output", output.text if isinstance(output, Reply) else document(output)),
            "metadata": _json({name: value for name, value in more.items() if value}),
        }
        if isinstance(output, Reply):
            found |= _model_call(span, output)
        if isinstance(output, Embedding):
            found["gen_ai.operation.name"] = "embeddings"
            model = str(self.run.settings.get("embedder", ""))
            found |= dict.fromkeys(("gen_ai.request.model", "embedding.model_name"), model)
            for n, text in enumerate(output.texts):
                found[f"embedding.embeddings.{n}.embedding.text"] = text
        if span.kind == "AGENT":
            found["gen_ai.operation.name"] = "plan"
        if span.kind == "TOOL":
            found["tool.name"] = span.name
        if span.kind == "RERANKER" and span.hits is not None:
            found |= self._reranking(result, span)
        elif span.hits is not None:
            found |= self._documents("retrieval.documents", span.hits)
        if isinstance(output, Search) and span.hits is not None:
            found |= self._retrieval(span, output)
        return found

    def _retrieval(self, span: Span, output: Search) -> Attributes:
        found: Attributes = {
            "gen_ai.operation.name": "search_memory" if output.recalled else "retrieval",
            "gen_ai.data_source.id": self.run.corpus,
            "gen_ai.retrieval.documents": _json([{"id": id, "score": s} for id, s in span.hits or ()]),
        }
        if output.texts:
            found["gen_ai.retrieval.query.text"] = output.texts[0]
        if isinstance(top_k := span.args.get("k"), int):
            found["gen_ai.retrieval.top_k"] = top_k
        return found

    def _reranking(self, result: RouteResult, span: Span) -> Attributes:
        found = self._documents("reranker.output_documents", span.hits or ())
        made = {one.id: one.hits or () for one in result.spans}
        given = [
            hit
            for link in span.links
            for hit in made.get(link.span or 0, ())[link.start : link.start + link.size]
        ]
        found |= self._documents("reranker.input_documents", given)
        if isinstance(text := span.args.get("text"), str):
            found["reranker.query"] = text
        if isinstance(span.output, Rerank) and span.output.reranker:
            found["reranker.model_name"] = span.output.reranker
        return found

    def _documents(self, prefix: str, hits: Iterable[tuple[str, float]]) -> Attributes:
        found: Attributes = {}
        for n, (id, score) in enumerate(hits):
            at = f"{prefix}.{n}.document"
            found |= {f"{at}.id": id, f"{at}.score": float(score)}
            if (passage := self.run.passages.get(id)) is not None:
                found[f"{at}.content"] = passage.text
                found[f"{at}.metadata"] = _json({"title": passage.title, "document": passage.doc_id})
        return found

    def _links(self, result: RouteResult, links: Sequence[Link]) -> list[dict[str, Any]]:
        return [
            self._link(
                self._span_id(result.route, link.span),
                {"routescope.arg": link.arg, "routescope.start": link.start, "routescope.size": link.size},
            )
            for link in links
            if link.span is not None
        ]

    def _link(self, span: str, attributes: Attributes) -> dict[str, Any]:
        return {"traceId": self.id, "spanId": span, "attributes": _attributes(attributes)}

    def _span(
        self,
        id: str,
        parent: str | None,
        name: str,
        start_ms: float,
        ms: float,
        attributes: Attributes,
        links: Sequence[dict[str, Any]] = (),
        error: str | None = None,
        kind: int = INTERNAL,
        events: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        start = self.began + _finite(start_ms)
        return {
            "traceId": self.id,
            "spanId": id,
            **({"parentSpanId": parent} if parent else {}),
            "name": _text(name),
            "kind": kind,
            "startTimeUnixNano": _nano(start),
            "endTimeUnixNano": _nano(start + max(0.0, _finite(ms))),
            "attributes": _attributes(attributes),
            **({"events": list(events)} if events else {}),
            **({"links": list(links)} if links else {}),
            "status": {"code": OK} if error is None else {"code": ERROR, "message": _text(error)},
        }

    def _span_id(self, route: str, number: int | None = None) -> str:
        return _hash(16, self.run.id, route, "" if number is None else str(number))


def _model_call(span: Span, reply: Reply) -> Attributes:
    found: Attributes = {
        "llm.model_name": reply.model,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": reply.text,
        "llm.invocation_parameters": _json({"max_tokens": span.args.get("max_tokens")}),
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": reply.model,
    }
    if span.tokens is not None:
        used = span.tokens
        found |= {
            "llm.token_count.prompt": used.prompt,
            "llm.token_count.completion": used.completion,
            "llm.token_count.total": used.prompt + used.completion,
            "llm.token_count.prompt_details.cache_read": used.cached,
            "gen_ai.usage.input_tokens": used.prompt,
            "gen_ai.usage.output_tokens": used.completion,
        }
    return found


def _fields(one: object, names: str) -> Attributes:
    return {name: getattr(one, name) for name in names.split()}


def _value(name: str, value: Any) -> Attributes:
    if isinstance(value, str):
        return {f"{name}.value": value, f"{name}.mime_type": TEXT}
    return {f"{name}.value": _json(value), f"{name}.mime_type": JSON}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(min(max(-LARGEST, value), LARGEST))}
    if isinstance(value, float):
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return {"doubleValue": value if math.isfinite(value) else names.get(value, "NaN")}
    return {"stringValue": _text(str(value))}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _text(text: str) -> str:
    """Replace the characters of a text that UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _finite(ms: float) -> float:
    return ms if math.isfinite(ms) else 0.0


def _nano(ms: float) -> str:
    bounded = min(max(0.0, ms), LARGEST / 1_000_000)  # before it is multiplied, which may overflow
    return str(min(round(bounded * 1_000_000), LARGEST))


def _hash(length: int, *parts: str) -> str:
    """Return a stable id of `length` hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:length]
