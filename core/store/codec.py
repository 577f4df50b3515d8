"""A Run as one JSON document and back, exactly; what is not of the types is refused by name.

Scores and times may be NaN or infinite, text may be any Python string (lone surrogates too): all are kept.
Each result has the number of its `FORMAT`; any other is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from reprlib import repr as short
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from core.domain import outputs
from core.domain.errors import BadInput
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Scored, Span, Turn

T = TypeVar("T")
FORMAT = 1  # of results
APART = {"query", "results", "passages", "spans"}  # fields that a document has elsewhere, or in another form
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
    given = _dict(document, "a run")
    passages = {p.id: p for p in (_decode(Passage, p) for p in _list(given.pop("passages", []), "passages"))}
    rankings = [_ranking(r) for r in _list(given.pop("rankings", []), "rankings")]
    query = _decode(Query, {"text": given.pop("question", None)}, history=_turns(given.pop("history", [])))
    results = tuple(
        _result(result, passages, rankings) for result in _list(given.pop("results", []), "results")
    )
    return _decode(Run, given, query=query, results=results, passages=passages)


def _turns(given: Any) -> tuple[Turn, ...]:
    pairs = _named("history", _reader(tuple[tuple[str, str], ...]), given)
    return tuple(_decode(Turn, {"role": role, "text": text}) for role, text in pairs)


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


def _result(document: Any, passages: Mapping[str, Passage], rankings: list[Scored]) -> RouteResult:
    given = _dict(document, "a result")
    if (written := given.pop("format", None)) != FORMAT:
        raise BadInput(f"a result has format {short(written)}; this RouteScope reads format {FORMAT}")
    hits = _ranking(given.pop("hits", []))
    spans = [_dict(span, "a span") for span in _list(given.pop("spans", []), "spans")]
    try:
        found = tuple(Hit(passages[id], score) for id, score in hits)
        return _decode(RouteResult, given, hits=found, spans=_spans(spans, rankings))
    except (KeyError, IndexError, TypeError) as error:
        raise BadInput(f"a result refers to a missing passage or ranking: {error}") from None


def _spans(spans: list[dict[str, Any]], rankings: list[Scored]) -> tuple[Span, ...]:
    return tuple(
        _decode(Span, span, hits=None if (n := span.pop("hits", None)) is None else rankings[n])
        for span in spans
    )


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


def _decode(kind: type[T], document: Mapping[str, Any], **ready: Any) -> T:
    """Read a dataclass from JSON values, each of its field's type; `ready` fields are taken unchanged."""
    readers: dict[str, Callable[[Any], Any]] = _readers(cast("Any", kind))
    try:
        return kind(**{name: readers[name](value) for name, value in document.items()}, **ready)
    except (KeyError, TypeError, ValueError) as error:
        for name, value in document.items():
            if name not in readers:
                raise BadInput(
                    f"{kind.__name__} has no {short(name)}; a newer version may have written it"
                ) from None
            _named(f"{kind.__name__}.{name}", readers[name], value)
        raise BadInput(f"{kind.__name__}: {error}") from None  # a field is missing


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    hints = get_type_hints(kind)
    return {field.name: _reader(hints[field.name]) for field in fields(kind) if field.name not in APART}


def _ranking(value: Any) -> Scored:
    """Read a ranking; it is the most frequent value, hence read without a call per pair."""
    pairs = _list(value, "a ranking")
    with suppress(TypeError, ValueError):  # told below
        found = [(id, score) for id, score in pairs if type(id) is str and type(score) is float]
        if len(found) == len(pairs):
            return tuple(found)
    return cast("Scored", _named("a ranking", _reader(Scored), value))


def _named(name: str, reader: Callable[[Any], Any], value: Any) -> Any:
    try:
        return reader(value)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name}: {error}") from None


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return a function that converts a JSON value to `hint`, or raises TypeError or ValueError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if hint == outputs.Output:
        return outputs.from_document
    if hint in (str, int, float, bool):
        return {str: _string, int: _whole, float: _number, bool: _truth}[hint]
    if origin is Literal:
        return lambda value: _one_of(value, arguments)
    if origin in (Union, UnionType) and arguments[1:] == (NoneType,):
        inner = _reader(arguments[0])
        return lambda value: None if value is None else inner(value)
    if origin is tuple and arguments[1:] == (...,):
        each = _reader(arguments[0])
        return lambda value: tuple(map(each, _list(value, "it")))
    if origin is tuple:
        readers = tuple(map(_reader, arguments))
        return lambda value: tuple(read(item) for read, item in zip(readers, _list(value, "it"), strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if arguments[1] is Any:
            return lambda value: _dict(value, "it")
        item = _reader(arguments[1])
        return lambda value: {key: item(one) for key, one in _dict(value, "it").items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda value: _decode(hint, _dict(value, "it"))
    raise NotImplementedError(f"no way to read {hint}")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{short(value)} is not text")


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    raise TypeError(f"{short(value)} is not a whole number of 64 bits")


def _number(value: Any) -> float:
    return value if isinstance(value, float) else _whole(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError(f"{short(value)} is neither true nor false")


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if value in allowed:
        return value
    raise ValueError(f"{short(value)} is not one of {', '.join(map(str, allowed))}")


def _list(value: Any, name: str) -> list[Any]:
    if isinstance(value, list):
        return value
    raise BadInput(f"{name} is not a list")


def _dict(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return dict(value)
    raise BadInput(f"{name} is not an object")
