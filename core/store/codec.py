"""A Run as one JSON document and back, exactly; what is not of the types is refused by name.

Scores and times may be NaN or infinite, text may be any Python string (lone surrogates too): all are kept.
Each result has the number of its `FORMAT`; any other is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from reprlib import repr as short
from typing import Any

from pydantic_core import SchemaValidator

from core.domain import outputs
from core.domain.errors import BadInput
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Scored, Span

FORMAT = 1  # of results
Lists = dict[Scored, int]  # the rankings of a run's spans, each once, numbered in order of appearance


def dumps(value: Any) -> str:
    """Compact JSON, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_bytes(text: str) -> bytes:
    """UTF-8, where a lone surrogate keeps its own three bytes."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes | str) -> str:
    """Invert `to_bytes`."""
    return data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")


def to_document(run: Run) -> dict[str, Any]:
    """Convert a run to JSON values; equal runs give equal documents."""
    check(run)
    lists: Lists = {}
    return {
        "id": run.id,
        "created": run.created,
        "question": run.query.text,
        "history": [[turn.role, turn.text] for turn in run.query.history],
        "corpus": run.corpus,
        "fingerprint": run.fingerprint,
        "settings": run.settings,
        "status": run.status,
        "wall_ms": run.wall_ms,
        "results": [result_document(result, lists) for result in run.results],
        "rankings": list(lists),
        "passages": [_sparse(run.passages[id]) for id in sorted(run.passages)],
    }


def result_document(result: RouteResult, lists: Lists) -> dict[str, Any]:
    """One result; its spans name their rankings by number in `lists`, which grows."""
    document = {field.name: getattr(result, field.name) for field in fields(result)}
    document["format"] = FORMAT
    document["hits"] = [(hit.passage.id, hit.score) for hit in result.hits]
    document["spans"] = [_span_document(span, lists) for span in result.spans]
    document["origin"] = None if result.origin is None else _sparse(result.origin)
    document["basis"] = None if result.basis is None else _sparse(result.basis)
    return document


def from_document(document: Any) -> Run:
    """Convert a document to a run. Raises BadInput that names the invalid part."""
    if not isinstance(document, dict):
        raise BadInput("a run is not an object")
    given = dict(document)
    passages = {one.id: one for one in _read(tuple[Passage, ...], given.pop("passages", []), "passages")}
    rankings = _read(tuple[Scored, ...], given.pop("rankings", []), "rankings")
    history = _read(tuple[tuple[str, str], ...], given.pop("history", []), "history")
    turns = [{"role": role, "text": text} for role, text in history]
    query = _read(Query, {"text": given.pop("question", None), "history": turns}, "question")
    results = given.pop("results", [])
    if not isinstance(results, list):
        raise BadInput("results is not a list")
    whole = {"query": query, "results": [_result(one, passages, rankings) for one in results]}
    found: Run = _read(Run, {**given, **whole, "passages": passages}, "run")
    return found


def _result(document: Any, passages: Mapping[str, Passage], rankings: tuple[Scored, ...]) -> dict[str, Any]:
    """Return a result with its passages, rankings and outputs in their places."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        written = short(document.get("format") if isinstance(document, dict) else document)
        raise BadInput(f"a result has format {written}; this RouteScope reads format {FORMAT}")
    given = {name: value for name, value in document.items() if name != "format"}
    try:
        hits = _read(Scored, given.get("hits", []), "hits")
        spans = [dict(span) for span in given.get("spans", [])]
        for span in spans:
            if (n := span.get("hits")) is not None:
                span["hits"] = rankings[n]
            if "output" in span:
                span["output"] = outputs.from_document(span["output"])
        return {**given, "hits": [Hit(passages[id], score) for id, score in hits], "spans": spans}
    except (KeyError, IndexError, TypeError) as error:
        raise BadInput(f"a result refers to a missing passage or ranking: {error}") from None
    except ValueError as error:
        raise BadInput(f"a step is not an object: {error}") from None


def _read(kind: Any, value: Any, name: str) -> Any:
    """Read JSON values as `kind`; instances of its dataclasses are taken unchanged."""
    try:
        return _validator(kind).validate_python(value)
    except ValueError as error:  # pydantic's ValidationError
        raise BadInput(f"{name}: {outputs.fault(error)}") from None


@cache
def _validator(kind: Any) -> SchemaValidator:
    """Return a strict validator that takes lists for tuples and objects for dataclasses.

    Whole numbers have 64 bits.
    """
    from pydantic import ConfigDict, TypeAdapter

    def relax(schema: Any) -> None:
        for inner in schema.values() if isinstance(schema, dict) else schema:
            if isinstance(inner, dict | list | tuple):
                relax(inner)
        if isinstance(schema, dict) and schema.get("type") in ("tuple", "dataclass"):
            schema["strict"] = False
        elif isinstance(schema, dict) and schema.get("type") == "int":
            schema |= {"ge": -(2**63), "lt": 2**63}

    # a union, since a type that is a dataclass takes no configuration
    config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
    schema = TypeAdapter(kind | None, config=config).core_schema
    relax(schema)
    return SchemaValidator(schema)


def check(run: Run) -> None:
    """BadInput unless `passages` holds, under its own id, every passage that a result names."""
    for id, passage in run.passages.items():
        if passage.id != id:
            raise BadInput(f"run {short(run.id)}: passage {short(passage.id)} is listed as {short(id)}")
    for result in run.results:
        for hit in result.hits:
            known = run.passages.get(hit.passage.id)
            if known is not hit.passage and known != hit.passage:
                named = f"{short(result.route)} names passage {short(hit.passage.id)}"
                raise BadInput(f"run {short(run.id)}: {named}, which is not the run's")


def _span_document(span: Span, lists: Lists) -> dict[str, Any]:
    document = _sparse(span)
    if span.hits is not None:
        document["hits"] = lists.setdefault(span.hits, len(lists))
    if span.output != outputs.NOTHING:
        document["output"] = outputs.document(span.output)
    if span.links:
        document["links"] = [_sparse(link) for link in span.links]
    if span.tokens is not None:
        document["tokens"] = _sparse(span.tokens)
    return document


def _sparse(value: Any) -> dict[str, Any]:
    """Return a dataclass without the fields that have their default."""
    kind: Any = type(value)
    return {name: item for name, default in _defaults(kind) if (item := getattr(value, name)) != default}


@cache
def _defaults(kind: Any) -> list[tuple[str, Any]]:
    return [
        (field.name, field.default if field.default_factory is MISSING else field.default_factory())
        for field in fields(kind)
    ]
