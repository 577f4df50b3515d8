"""Traces of other programs: read from OTLP, and from what Phoenix, Arize and other tools export.

Two vocabularies are read side by side: OpenInference's (`retrieval.documents.0.document.content`) and
OpenTelemetry's for generative AI (`gen_ai.retrieval.documents`). What can be read is kept; the rest is
counted by reason.

Sources: OTLP 1.x, JSON encoding; OpenInference semantic conventions (openinference-semantic-conventions
0.1.42); OpenTelemetry semantic conventions for generative AI, in development; the records of Phoenix'
`GET /v1/projects/{project}/spans` and of its data frames (arize-phoenix 20.26); Arize' `ax spans export`;
OpenLLMetry's opentelemetry-semantic-conventions-ai (db.query.result). Other tools: core.store.trace_sources.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar, cast, get_args

from core.domain.errors import BadInput, shortened
from core.domain.external import MAX_HITS, MAX_NAME, MAX_TEXT, MAX_TITLE, ForeignHit
from core.domain.parquet import parquet_rows
from core.domain.text import storable
from core.domain.types import SpanKind
from core.store.otlp import EVALUATION, SERVICE
from core.store.trace_sources import source_of
from core.store.trace_sources.documents import ID, LISTS, TEXT, document, listed
from core.store.trace_sources.values import (
    FEEDBACK,
    VOCABULARY,
    either,
    feedback_of,
    fields_of,
    finite_number,
    names,
    nanoseconds,
    parsed_text,
    string_of,
    whole,
)

T = TypeVar("T")
MAX_BYTES = 128 * 2**20  # of a file or a request: parsed it takes some ten times as much memory
MAX_SPANS = 200_000  # of a file
MAX_TRACE = 2_000  # spans of one trace
MAX_ATTRIBUTES = 20_000  # of one span
MAX_DEPTH = 20  # of lists and objects in each other
_BETWEEN = re.compile(r"[\s,]*")  # JSON values
EVENTS = "events"  # the attribute that has a span's events
OUTPUTS = ("output.value", "langfuse.observation.output", "traceloop.entity.output")
KINDS: frozenset[str] = frozenset(get_args(SpanKind))
_NAMES = {key: names(key) for key in ("score", "distance", "source", "start", "end", "pages")}
Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ForeignSpan:
    """One span as it came; times in nanoseconds since 1970. `hits`: the list that it gave, None for none;
    `given`: what a reranker was given. `sources`: ids of spans that its links name.
    """

    trace: str
    id: str
    parent: str
    name: str
    kind: SpanKind
    start: int
    end: int
    error: str | None
    attributes: Mapping[str, Any]
    service: str = ""
    hits: tuple[ForeignHit, ...] | None = None
    given: tuple[ForeignHit, ...] = ()

    def text(self, *names: str) -> str:
        """Return the first of these attributes that is a text, else ""."""
        return next((v for name in names if isinstance(v := self.attributes.get(name), str) and v), "")

    def number(self, *names: str) -> int:
        """Return the first of these attributes that is a number, else 0."""
        return next((n for name in names if (n := whole(self.attributes.get(name))) is not None), 0)


@dataclass(frozen=True, slots=True)
class ForeignTrace:
    """The spans of one request in the order they began. A parent that is not among them is ""."""

    id: str
    spans: tuple[ForeignSpan, ...]

    @property
    def roots(self) -> tuple[ForeignSpan, ...]:
        """The spans without a parent."""
        return tuple(span for span in self.spans if not span.parent)


@dataclass(slots=True)
class ReadTraces:
    """Traces in the order they began, and how many things were left out or mended, by reason."""

    traces: list[ForeignTrace] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def read(data: bytes, name: str) -> ReadTraces:
    """Read the traces of a file: one JSON document, or one per line. Raises BadInput, starting with `name`,
    if it is too large, not JSON, or contains no trace.
    """
    if len(data) > MAX_BYTES:
        most = f"at most {MAX_BYTES // 2**20} MiB at a time are allowed"
        raise BadInput(f"{name}: {len(data) / 2**20:.0f} MiB of traces; {most}")
    skipped: Counter[str] = Counter()
    return read_documents(_documents(data, name, skipped), name, skipped)


def read_documents(documents: Iterable[Any], name: str, skipped: Counter[str]) -> ReadTraces:
    """Read traces as `read`, from parsed JSON."""
    spans: list[ForeignSpan] = []
    for one in documents:
        for span in _spans(one, skipped):
            spans.append(span)
            if len(spans) > MAX_SPANS:
                raise BadInput(f"{name}: more than {MAX_SPANS:,} spans; export fewer traces at a time")
    if not spans:
        why = f" ({in_words(skipped)})" if skipped else ""
        raise BadInput(
            f"{name}: not a session bundle, and no traces in it{why}; expected OTLP JSON "
            "(resourceSpans), or spans exported as JSON, JSON lines or parquet by Phoenix, Langfuse, "
            "LangSmith, MLflow or Arize"
        )
    return assembled(spans, skipped)


def spans_of(document: Any, skipped: Counter[str]) -> list[ForeignSpan]:
    """Return the spans of one OTLP request. Raises BadInput if it is not one."""
    if not isinstance(document, dict) or not any(
        name in document for name in ("resourceSpans", "resource_spans")
    ):
        raise BadInput("the request has no resourceSpans: it is no OTLP traces")
    return list(_spans(document, skipped))


def assembled(spans: Iterable[ForeignSpan], skipped: Counter[str]) -> ReadTraces:
    """Assemble spans to traces."""
    found = ReadTraces(skipped=skipped)
    by_trace: dict[str, dict[str, ForeignSpan]] = {}
    for span in spans:
        own = by_trace.setdefault(span.trace, {})
        if span.id in own:
            found.skipped["spans with the id of another span of their trace"] += 1
        else:
            own[span.id] = span
    for id, own in by_trace.items():
        if len(own) > MAX_TRACE:
            found.skipped[f"traces of more than {MAX_TRACE:,} spans"] += 1
            continue
        found.traces.append(ForeignTrace(id, tuple(_with_lists(_ordered(own, found.skipped)))))
    found.traces.sort(key=lambda trace: (trace.spans[0].start, trace.id))
    return found


def in_words(skipped: Mapping[str, int]) -> str:
    """Describe what was left out or repaired."""
    return "; ".join(f"{count:,} {reason}" for reason, count in sorted(skipped.items()) if count)


def _ordered(own: dict[str, ForeignSpan], skipped: Counter[str]) -> list[ForeignSpan]:
    """Return the spans of a trace as a tree: missing or circular parents are removed, and no span ends before
    it starts.
    """
    below: defaultdict[str, list[ForeignSpan]] = defaultdict(list)
    for span in own.values():
        below[span.parent if span.parent in own else ""].append(span)
    keys: dict[str, tuple[int, int, int, str]] = {}  # when a span and all above it have begun; its depth
    mended: dict[str, ForeignSpan] = {}
    for top in (*below[""], *own.values()):  # what no root leads to is in a circle, or below one
        if top.id in mended:
            continue
        if top.parent:
            why = "parents go in a circle" if top.parent in own else "parent is missing"
            skipped[f"spans whose {why}, kept without one"] += 1
        queue = [(replace(top, parent=""), top.start, 0)]
        for span, start, depth in queue:
            if span.end < span.start:
                skipped["spans that end before they begin, kept with no duration"] += 1
                span = replace(span, end=span.start)
            mended[span.id] = span
            keys[span.id] = start, depth, -span.end, span.id
            for child in below[span.id]:
                if child.id not in mended:
                    if child.start < span.start:
                        skipped["spans that begin before their parent (clock skew), kept as they are"] += 1
                    queue.append((child, max(start, child.start), depth + 1))
    return sorted(mended.values(), key=lambda span: keys[span.id])


def _with_lists(spans: list[ForeignSpan]) -> list[ForeignSpan]:
    """Spans with the documents in their outputs as their lists, where no step below them gave a list: tools,
    functions and frameworks whose traces do not say which step retrieves.
    """
    found = {span.id: span for span in spans}
    above: set[str] = set()  # spans with a list somewhere below them
    for span in reversed(spans):  # a step is behind the one above it
        open_ = span.id not in above and span.hits is None and span.kind not in ("LLM", "EMBEDDING")
        if open_ and (hits := _objects(listed(span.text(*OUTPUTS)))):
            kind = "RETRIEVER" if span.kind in ("CHAIN", "TOOL") and span.parent else span.kind
            found[span.id] = replace(span, hits=hits, kind=kind)
        if found[span.id].hits or span.id in above:
            above.add(span.parent)
    return [found[span.id] for span in spans]


# Files.
# The names of columns in a first line: a table as CSV, as pages of other tools export it.
_TABLE = re.compile(r'"?[A-Za-z_][\w. ]{0,60}"?(?:,"?[\w. ]{0,60}"?){2,200}\r?\n')


def _documents(data: bytes, name: str, skipped: Counter[str]) -> Iterator[Any]:
    """Yield the JSON documents of a file: one, or one per line, or rows of parquet or CSV; count bad ones."""
    if data[:4] == b"PAR1":
        yield from parquet_rows(io.BytesIO(data), name, most_bytes=4 * MAX_BYTES, most_rows=MAX_SPANS)
        return
    text = data.decode("utf-8-sig", "replace")
    if _TABLE.match(text):
        for row in csv.DictReader(io.StringIO(text, newline="")):
            cells = {column: cell for column, cell in row.items() if isinstance(cell, str) and cell}
            yield {str(column): parsed_text(cell) or cell for column, cell in cells.items()}
        return
    try:
        yield json.loads(text)
        return
    except RecursionError:
        raise BadInput(f"{name}: nested too deeply") from None
    except ValueError as error:
        first = error
    lines = [line for line in text.split("\n") if line.strip()]
    values = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            values.append(json.loads(line))
    if values:
        skipped["lines that are not JSON"] += len(lines) - len(values)
    else:
        values = list(_whole_values(text, skipped))
    if not values:
        raise BadInput(
            f"{name}: not a session bundle, and not JSON ({first}); expected traces as OTLP JSON"
        ) from None
    yield from values


def _whole_values(text: str, skipped: Counter[str]) -> Iterator[Any]:
    """Yield the complete JSON values in a text of several, concatenated over many lines, or in a truncated
    list.
    """
    decoder, at = json.JSONDecoder(), 1 if text.lstrip().startswith("[") else 0
    at += len(text) - len(text.lstrip())
    while (found := _BETWEEN.match(text, at)) and found.end() < len(text):
        try:
            value, at = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            skipped["entries that are not whole JSON"] += 1
            return
        yield value


def _spans(document: Any, skipped: Counter[str]) -> Iterator[ForeignSpan]:
    """Yield the spans of a JSON document of any known shape, and count what cannot be read."""
    for make in _records(document, skipped):
        if (span := _read_or_skip(partial(_made, make), skipped, "spans")) is not None:
            yield span


def _records(document: Any, skipped: Counter[str]) -> Iterator[Callable[[], Mapping[str, Any]]]:
    """Yield a function for each span of a document that returns its record, an empty one for no span."""
    if isinstance(document, list):
        for one in document:
            yield from _records(one if isinstance(one, dict) else {}, skipped)
    elif not isinstance(document, dict):
        yield dict
    elif any(key in document for key in ("resourceSpans", "resource_spans")):
        yield from _otlp(document)
    elif isinstance(ids := document.get("context.trace_id"), dict):  # a data frame by columns
        for key in ids:
            row = {name: column.get(key) for name, column in document.items() if isinstance(column, dict)}
            yield from _records({"context.span_id": key, **row}, skipped)
    elif (source := source_of(document)) is not None:
        tool, reader = source
        for record in _read_or_skip(lambda: list(reader(document)), skipped, f"entries of {tool}") or ():
            yield partial(dict, record)
    elif "context" in document or "context.trace_id" in document:
        yield partial(_openinference, document)
    else:  # a page of an API
        pages = (v for name in _NAMES["pages"] if isinstance(v := document.get(name), list) and v)
        yield from _records(next(pages, None), skipped)


def _read_or_skip(make: Callable[[], T], skipped: Counter[str], what: str) -> T | None:
    """Return what `make` reads, or count why it cannot be read."""
    try:
        return make()
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else type(error).__name__
        skipped[f"{what} that cannot be read ({shortened(reason, 80)})"] += 1
        return None


def _otlp(document: Mapping[str, Any]) -> Iterator[Callable[[], Mapping[str, Any]]]:
    for resource in _dicts(either(document, "resourceSpans", "resource_spans")):
        about = _attributes((resource.get("resource") or {}).get("attributes"))
        service = str(either(about, "openinference.project.name", "service.name") or "")
        scopes = either(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        for scope in _dicts(scopes):
            yield from (partial(_otlp_record, span, service) for span in _dicts(scope.get("spans")))


def _dicts(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects, with an empty one for anything else in it."""
    return [one if isinstance(one, dict) else {} for one in value] if isinstance(value, list) else []


def _otlp_record(span: Mapping[str, Any], service: str) -> dict[str, Any]:
    status = span.get("status") or {}
    failed = status.get("code") in (2, "STATUS_CODE_ERROR", "ERROR")
    own = _attributes(span.get("attributes"))
    return fields_of("otlp", span) | {
        "error": status.get("message") or "failed" if failed else None,
        "attributes": own | _events(span.get("events"), own, service),
        "service": service,
    }


def _events(given: Any, own: Attributes, service: str) -> Attributes:
    """Return a span's events as one attribute, with their names and attributes, and the feedback in them or
    in its own attributes. The decisions of our own routes are no feedback.
    """
    found: list[dict[str, Any]] = []
    for one in _dicts(given):
        attributes = one.get("attributes")
        plain = attributes if isinstance(attributes, dict) else _attributes(attributes)
        found.append({"name": str(one.get("name") or ""), "attributes": plain})
    given_ = [one["attributes"] for one in found if one["name"] == EVALUATION and service != SERVICE]
    given_ += [own] if "gen_ai.evaluation.name" in own else []
    parts = ("name", "score.value", "score.label", "explanation")
    judged = [
        feedback_of("OpenTelemetry", *(one.get(f"gen_ai.evaluation.{part}") for part in parts))
        for one in given_
    ]
    return ({EVENTS: found} if found else {}) | ({FEEDBACK: judged} if judged else {})


def _openinference(record: Mapping[str, Any]) -> dict[str, Any]:
    """Read a span as Phoenix and Arize export it: nested, or a row of a data frame with dots in its names."""
    given: Attributes = {}
    _flatten("", record, given)
    start = "attributes."
    attributes = {name.removeprefix(start): v for name, v in given.items() if name.startswith(start)}
    failed = str(either(given, "status_code", "statusCode", "status.status_code") or "").endswith("ERROR")
    message = either(given, "status_message", "statusMessage", "status.description")
    service = str(given.get("resource.attributes.service.name") or "")
    return fields_of("openinference", given) | {
        "error": message or "failed" if failed else None,
        "attributes": attributes | _events(record.get("events"), attributes, service),
    }


# Spans.


def _made(make: Callable[[], Mapping[str, Any]]) -> ForeignSpan:
    """Read a span from the record that `make` returns, as `core.store.trace_sources` produces it."""
    record = make()
    trace, id, parent = (record.get(name) for name in ("trace_id", "span_id", "parent_id"))
    if not isinstance(trace, str) or not trace or not isinstance(id, str) or not id:
        raise ValueError("no trace id or span id")
    kind, error, attributes = record.get("kind"), record.get("error"), record.get("attributes") or {}
    began, end = nanoseconds(record.get("start")), record.get("end")
    texts = (trace, id, parent, str(record.get("name") or "span"), str(record.get("service") or ""))
    trace, id, parent, name, service = (
        storable(one)[:MAX_NAME] if isinstance(one, str) else "" for one in texts
    )
    end = nanoseconds(end) if end is not None else began
    told = storable(str(error)) if error else None
    own = _kind(kind, attributes)
    span = ForeignSpan(trace, id, parent, name, own, began, end, told, attributes, service)
    hits, given = _hits(span)
    if own == "CHAIN" and given:
        own = "RERANKER"
    elif own == "CHAIN" and hits is not None and not kind and not span.text("openinference.span.kind"):
        own = "RETRIEVER"
    return replace(span, hits=hits, given=given, kind=own)


def _kind(given: Any, attributes: Mapping[str, Any]) -> SpanKind:
    said = attributes.get("openinference.span.kind") or given or attributes.get("langfuse.observation.type")
    said = str(said or attributes.get("traceloop.span.kind") or "")
    if said.upper() in KINDS:
        return cast("SpanKind", said.upper())
    operation = VOCABULARY["operations"].get(str(attributes.get("gen_ai.operation.name") or ""))
    return cast("SpanKind", operation or VOCABULARY["kinds"].get(said.lower(), "CHAIN"))


def _hits(span: ForeignSpan) -> tuple[tuple[ForeignHit, ...] | None, tuple[ForeignHit, ...]]:
    """Return a span's output list, and its input list if it reranks."""
    found = span.attributes
    given = _listed(found, "reranker.input_documents.")
    for prefix in ("reranker.output_documents.", "retrieval.documents."):
        if hits := _listed(found, prefix):
            return hits, given
    stated = found.get("gen_ai.retrieval.documents")
    if isinstance(stated, str):
        parsed = parsed_text(stated)
        return _objects(parsed if isinstance(parsed, list) else ()), given
    if hits := _objects(_numbered(found, "gen_ai.retrieval.documents.")) or _objects(_of_events(found)):
        return hits, given
    if span.kind not in ("RETRIEVER", "RERANKER"):
        return None, given
    output = span.text(*OUTPUTS)
    if not (texts := listed(output)):  # a list whose entries are only texts
        value = parsed_text(output)
        if isinstance(value, dict):
            value = next((value[name] for name in LISTS if isinstance(value.get(name), list)), None)
        texts = value if isinstance(value, list) else []
    return _objects(texts), given


def _of_events(attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the documents in OpenLLMetry's events of a vector store's query."""
    for one in attributes.get(EVENTS) or ():
        if one["name"] not in ("db.query.result", "db.search.result"):
            continue
        given = {key.removeprefix(f"{one['name']}."): value for key, value in one["attributes"].items()}
        text = given.get("document") or given.get("text")
        metadata = given.get("metadata") or given.get("entity")
        yield {**given, "metadata": metadata, **({"content": text} if text else {}), "document": None}


def _listed(attributes: Mapping[str, Any], prefix: str) -> tuple[ForeignHit, ...]:
    """Read `PREFIX N.document.FIELD` of OpenInference, or Arize' one list of contents."""
    contents = [value for name, value in sorted(attributes.items()) if name.startswith(f"{prefix}contents.")]
    return _objects(_dicts([one.get("document") for one in _numbered(attributes, prefix)]) + contents)


def _numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the objects under `prefix`, in the order of their numbers."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        number, dot, rest = name[len(prefix) :].partition(".")
        if not dot or not number.isdecimal() or len(number) > 6:
            continue
        at = found.setdefault(int(number), {})
        *path, last = rest.split(".")
        for key in path:
            inner = at.setdefault(key, {})
            at = inner if isinstance(inner, dict) else {}
        at[last] = value
    return [found[number] for number in sorted(found)]


def _objects(given: Iterable[Any]) -> tuple[ForeignHit, ...]:
    """Return retrieved documents in the shapes of frameworks; one with neither id nor text is skipped."""
    objects = ({"content": one} if isinstance(one, str) else one for one in islice(given, MAX_HITS))
    hits = (_hit(one) for one in objects if isinstance(one, dict))
    return tuple(hit for hit in hits if hit is not None)


def _hit(one: Mapping[str, Any]) -> ForeignHit | None:
    one = document(one) or document(one.get("content")) or one
    score = either(one, *_NAMES["score"])
    if score is None and (distance := finite_number(either(one, *_NAMES["distance"]))) is not None:
        score = -distance  # the nearest first, as everywhere
    metadata = either(one, "metadata", "meta", "extra_info")
    metadata = parsed_text(metadata) if isinstance(metadata, str) else metadata
    metadata = {str(key): value for key, value in metadata.items()} if isinstance(metadata, dict) else {}
    text, id, source, title = (
        storable(string_of(value))
        for value in (
            either(one, *TEXT),
            either(one, *ID) or either(metadata, "chunk_id", "id"),
            either(metadata, *_NAMES["source"]) or either(one, "source", "url"),
            either(metadata, "title", "file_name"),
        )
    )
    if not text and not id:
        return None
    start, end = (whole(either(metadata, *_NAMES[side])) for side in ("start", "end"))
    placed = start is not None and end is not None and 0 <= start < end
    return ForeignHit(
        (source or id)[:MAX_NAME] or "unnamed",
        text[:MAX_TEXT],
        id[:MAX_NAME] or None,
        start if placed else None,
        end if placed else None,
        finite_number(score),
        title[:MAX_TITLE],
    )


# Values.


def _attributes(given: Any) -> Attributes:
    """Flatten the attributes of OTLP."""
    found: Attributes = {}
    for one in _dicts(given):
        if isinstance(one.get("key"), str):
            _flatten(storable(one["key"]), _any_value(one.get("value"), 0), found)
    return found


def _any_value(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if not isinstance(value, dict):
        return None
    for name, item in value.items():
        kind = name.replace("_", "").lower()
        if kind == "intvalue":
            return whole(item)
        if kind in ("stringvalue", "boolvalue", "doublevalue", "bytesvalue"):
            return item
        if kind == "arrayvalue" and isinstance(item, dict):
            return [_any_value(one, depth + 1) for one in item.get("values") or ()]
        if kind == "kvlistvalue" and isinstance(item, dict):
            pairs = _dicts(item.get("values"))
            return {str(one.get("key")): _any_value(one.get("value"), depth + 1) for one in pairs}
    return None


def _flatten(name: str, value: Any, into: Attributes, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if len(into) > MAX_ATTRIBUTES:
        raise ValueError(f"more than {MAX_ATTRIBUTES:,} attributes")
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            _flatten(f"{name}.{key}" if name else str(key), item, into, depth + 1)
    elif value is not None:
        into[name] = storable(value) if isinstance(value, str) else value
