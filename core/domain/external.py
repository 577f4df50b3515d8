"""The reply of an external pipeline: passages, the stages they went through, an answer.

    hit   = {doc_id, text?, id?, start?, end?, score?, title?, metadata?}
    stage = {name, kind?, ms?, hits?, from?: [names of earlier stages]}
    reply = [hit, ...] | {hits, answer?, citations?, rewritten?: [text], stages?: [stage, ...],
                          usage?: {prompt, completion, calls}}

Replies of functions, endpoints and files are all read here. Other fields are ignored and listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from core.domain.errors import BadInput, shortened
from core.domain.text import composed
from core.domain.types import SpanKind

StageKind = Literal["retrieve", "fuse", "rerank", "filter", "rewrite", "embed", "generate", "other"]
KINDS: Mapping[StageKind, SpanKind] = {
    "retrieve": "RETRIEVER",
    "fuse": "CHAIN",
    "rerank": "RERANKER",
    "filter": "CHAIN",
    "rewrite": "LLM",
    "embed": "EMBEDDING",
    "generate": "LLM",
    "other": "CHAIN",
}
# As OpenInference and Langfuse call them, for pipelines that are traced already.
_ALSO: Mapping[str, StageKind] = {
    "retriever": "retrieve",
    "search": "retrieve",
    "fusion": "fuse",
    "reranker": "rerank",
    "embedding": "embed",
    "llm": "generate",
    "generation": "generate",
    "chain": "other",
    "tool": "other",
    "agent": "other",
    "evaluator": "other",
    "guardrail": "filter",
}

HIT_FIELDS = ("doc_id", "text", "id", "start", "end", "score", "title", "metadata")
STAGE_FIELDS = ("name", "kind", "ms", "hits", "from")
REPLY_FIELDS = ("hits", "answer", "citations", "rewritten", "stages", "usage")
MAX_HITS = 1_000  # of one list: ten times what a route of ours returns
MAX_STAGES = 50
MAX_ALL_HITS = 10_000  # of all lists of a reply
MAX_TEXT = 100_000  # characters of one text
MAX_NAME = 1_000  # characters of an id or a name
MAX_TITLE = 2_000
MAX_METADATA = 20_000  # characters of a hit's metadata as JSON
MAX_TEXTS = 100  # rewritten questions
MAX_COUNT = 1_000_000_000
_SURROGATES = re.compile("[\ud800-\udfff]")
# Where pydantic's own words are of its types or of its insides.
_MESSAGES = {
    "missing": "is missing",
    "dataclass_type": "expected an object",
    "dict_type": "expected an object",
    "tuple_type": "expected a list",
    "string_type": "expected text",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "int_type": "expected a whole number",
    "too_short": "is empty; at least one character is needed",
    "string_too_short": "is empty; at least one character is needed",
}
SHAPE = "a list of hits, or an object with hits; a hit is an object with doc_id and text"


def _name(value: Any) -> Any:
    return str(value) if type(value) is int else value


def _stage_kind(value: Any) -> str:
    lowered = value.lower() if isinstance(value, str) else ""
    kind = _ALSO.get(lowered, lowered)
    if kind not in KINDS:
        raise ValueError(f"unknown kind of stage; allowed: {', '.join(KINDS)}")
    return kind


def _small(value: dict[str, Any]) -> dict[str, Any]:
    """Return a hit's metadata. Raises ValueError unless it is JSON of at most MAX_METADATA characters."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"not plain JSON values: {error}") from None
    if len(text) > MAX_METADATA:
        raise ValueError(f"{len(text):,} characters of JSON; at most {MAX_METADATA:,} are allowed")
    if "\\ud" in text and _SURROGATES.search(json.dumps(value, ensure_ascii=False)):
        raise PydanticCustomError("string_unicode", "not Unicode text")
    return value


def _without_nulls(value: Any) -> Any:
    """Drop fields that are null, as most serializers write missing fields that way."""
    return {key: one for key, one in value.items() if one is not None} if isinstance(value, dict) else value


def _placed(hit: ForeignHit) -> ForeignHit:
    if (hit.start is None) != (hit.end is None):
        raise ValueError("start and end are character offsets and go together")
    if hit.start is not None and hit.end is not None and hit.start > hit.end:
        raise ValueError(f"start {hit.start} is after end {hit.end}")
    return hit


def _stage_fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return _without_nulls({key: value.get(key) for key in STAGE_FIELDS})


_Named = Annotated[str, MinLen(1), MaxLen(MAX_NAME), Strict()]
Name = Annotated[_Named, BeforeValidator(_name, json_schema_input_type=_Named | int)]
Text = Annotated[str, MaxLen(MAX_TEXT), Strict()]
Count = Annotated[int, Ge(0), Le(MAX_COUNT), Strict()]
_STAGE_KINDS = [*KINDS, *_ALSO]


@dataclass(frozen=True, slots=True)
class ForeignHit:
    """One passage returned by a pipeline."""

    doc_id: Name
    text: Text = ""
    id: Name | None = None  # the pipeline's own id of the passage
    start: Count | None = None  # character offset in the document
    end: Count | None = None  # character offset in the document
    # None if the pipeline gave none; then the place alone ranks the hit
    score: Annotated[float, Strict(), AllowInfNan(False)] | None = None
    title: Annotated[str, MaxLen(MAX_TITLE), Strict()] = ""
    metadata: Annotated[Mapping[str, Any], AfterValidator(_small)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compose ids and texts, as a corpus has them."""
        for name in ("doc_id", "text", "id", "title"):
            if (given := getattr(self, name)) and not given.isascii():
                object.__setattr__(self, name, composed(given))


Hits = Annotated[
    tuple[Annotated[ForeignHit, BeforeValidator(_without_nulls), AfterValidator(_placed)], ...],
    MaxLen(MAX_HITS),
]


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One stage of a pipeline."""

    name: Name
    kind: Annotated[
        StageKind,
        BeforeValidator(_stage_kind),
        WithJsonSchema({"enum": [*_STAGE_KINDS, *map(str.upper, _STAGE_KINDS)]}),
    ] = "other"
    # duration in milliseconds, as the pipeline reported
    ms: Annotated[float, Ge(0), Le(MAX_COUNT), Strict(), AllowInfNan(False)] | None = None
    hits: Hits | None = None  # the stage's list; None if it reported none
    named: Annotated[Annotated[tuple[Name, ...], MaxLen(MAX_STAGES)] | None, Field(alias="from")] = None
    sources: SkipJsonSchema[tuple[int, ...]] = ()  # places of the earlier stages whose lists it consumed


@dataclass(frozen=True, slots=True)
class PipelineUsage:
    """Model tokens and calls, as the pipeline counted them."""

    prompt: Count = 0
    completion: Count = 0
    calls: Count = 0


@dataclass(frozen=True, slots=True)
class PipelineReply:
    """A pipeline's reply to one question."""

    hits: Hits
    answer: Text | None = None
    citations: Annotated[tuple[Name, ...], MaxLen(MAX_HITS)] = ()
    rewritten: Annotated[tuple[Text, ...], MaxLen(MAX_TEXTS)] = ()
    stages: Annotated[
        tuple[Annotated[PipelineStage, BeforeValidator(_stage_fields)], ...], MaxLen(MAX_STAGES)
    ] = ()
    usage: PipelineUsage | None = None
    ignored: SkipJsonSchema[tuple[str, ...]] = ()  # names of further fields, which nothing reads

    @property
    def scored(self) -> bool:
        """Return True if every hit has a score."""
        return all(hit.score is not None for hit in self.hits)

    def lists(self) -> Iterator[tuple[ForeignHit, ...]]:
        """Yield the lists of the stages in order, then the final one."""
        yield from (stage.hits for stage in self.stages if stage.hits is not None)
        yield self.hits


def parse_reply(data: bytes | str, owner: str) -> PipelineReply:
    """`read_reply` of JSON text; BadInput quotes how it begins where it is not JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        begin = shortened(" ".join(text[:400].split()), 120)
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise BadInput(
            f"{owner}: its reply is not JSON ({why}); it begins {begin!r}; expected {SHAPE}"
        ) from None
    return read_reply(value, owner)


def read_reply(value: Any, owner: str) -> PipelineReply:
    """Read a reply from plain JSON values. Raises BadInput, starting with `owner`, which names the first
    invalid field and what is allowed.
    """
    if isinstance(value, list):
        value = {"hits": value}
    if not isinstance(value, dict):
        raise BadInput(f"{owner}: its reply is {_kind_of(value)}; expected {SHAPE}")
    if "hits" not in value:
        has = ", ".join(shortened(str(key), 40) for key in list(value)[:8]) or "nothing"
        raise BadInput(f"{owner}: its reply has no field hits; it has: {has}; expected {SHAPE}")
    known = {name: value[name] for name in REPLY_FIELDS if value.get(name) is not None or name == "hits"}
    try:
        try:
            read = _adapter().validate_python(known)
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] != "string_unicode":
                raise
            read = _adapter().validate_python(_whole(known))
    except RecursionError:
        raise BadInput(f"{owner}: its reply is nested too deeply") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))[:120]
        if first["type"] == "too_long":
            most = first["ctx"]["max_length"]
            raise BadInput(f"{owner}: {place}: at most {most:,} are allowed; return fewer") from None
        message = _MESSAGES.get(first["type"]) or first["msg"].removeprefix("Value error, ")
        given = "" if first["type"] == "missing" else f" (given: {shortened(repr(first['input']), 80)})"
        raise BadInput(f"{owner}: {place}: {message}{given}") from None
    if (total := sum(map(len, read.lists()))) > MAX_ALL_HITS:
        raise BadInput(
            f"{owner}: hits and stages have {total:,} hits together; at most {MAX_ALL_HITS:,} are allowed"
        )
    return replace(
        read,
        citations=tuple(map(composed, read.citations)),
        stages=tuple(_with_sources(read.stages, owner)),
        ignored=tuple(_ignored(value)),
    )


@cache
def _adapter() -> TypeAdapter[PipelineReply]:
    return TypeAdapter(PipelineReply)


def _with_sources(read: Sequence[PipelineStage], owner: str) -> Iterator[PipelineStage]:
    """Yield the stages with the sources of their lists: those declared, or those implied by the order. A
    search starts its own list, a fusion takes all lists not consumed yet, any other stage the newest list.
    """
    taken: set[int] = set()
    with_lists: list[int] = []
    for at, one in enumerate(read):
        sources: Sequence[int] = with_lists[-1:]
        if one.named is not None:
            sources = [_earlier(name, read, at, owner) for name in one.named]
        elif one.hits is None or one.kind == "retrieve":
            sources = ()
        elif one.kind == "fuse":
            sources = [index for index in with_lists if index not in taken]
        if one.hits is not None:
            taken.update(sources)
            with_lists.append(at)
        yield replace(one, sources=tuple(sources))


def _earlier(name: str, stages: Sequence[PipelineStage], at: int, owner: str) -> int:
    """Return the place of the newest stage called `name` before `at` that has hits. Raises BadInput
    otherwise: only earlier stages are allowed, so that stages cannot form a cycle.
    """
    for index in reversed(range(at)):
        if stages[index].name == name and stages[index].hits is not None:
            return index
    known = ", ".join(dict.fromkeys(one.name for one in stages[:at] if one.hits is not None)) or "none"
    raise BadInput(
        f"{owner}: stages.{at}.from: {shortened(name, 80)!r} is no earlier stage with hits; earlier ones: "
        f"{shortened(known, 300)}"
    )


def _ignored(value: Mapping[str, Any]) -> Iterator[str]:
    """Names that stand in the reply, in its first hit or its first stage and mean nothing here."""
    first = {"hits.": (value["hits"], HIT_FIELDS), "stages.": (value.get("stages"), STAGE_FIELDS)}
    for where, (given, known) in {"": ([value], REPLY_FIELDS), **first}.items():
        names = [str(name) for name in (given[0] if given else ()) if name not in known]
        yield from (where + _SURROGATES.sub("\ufffd", shortened(name, 60)) for name in names[:10])


def _kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _whole(value: Any) -> Any:
    """Replace lone UTF-16 surrogates, which cannot be stored or shown, by U+FFFD."""
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value
