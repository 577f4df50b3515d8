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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from core.domain.errors import BadInput, shortened
from core.domain.text import composed
from core.domain.types import SpanKind

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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
    "model_type": "expected an object",
    "dict_type": "expected an object",
    "list_type": "expected a list",
    "string_type": "expected text",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "int_type": "expected a whole number",
    "too_short": "is empty; at least one character is needed",
    "string_too_short": "is empty; at least one character is needed",
}
SHAPE = "a list of hits, or an object with hits; a hit is an object with doc_id and text"


@dataclass(frozen=True, slots=True)
class ForeignHit:
    """One passage returned by a pipeline."""

    doc_id: str
    text: str = ""
    id: str | None = None  # the pipeline's own id of the passage
    start: int | None = None  # character offset in the document
    end: int | None = None  # character offset in the document
    score: float | None = None  # None if the pipeline gave none; then the place alone ranks the hit
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compose ids and texts, as a corpus has them."""
        for name in ("doc_id", "text", "id", "title"):
            if (given := getattr(self, name)) and not given.isascii():
                object.__setattr__(self, name, composed(given))


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """One stage of a pipeline."""

    name: str
    kind: StageKind = "other"
    ms: float | None = None  # duration in milliseconds, as the pipeline reported
    hits: tuple[ForeignHit, ...] | None = None  # the stage's list; None if it reported none
    sources: tuple[int, ...] = ()  # places of the earlier stages whose lists it consumed


@dataclass(frozen=True, slots=True)
class PipelineUsage:
    """Model tokens and calls, as the pipeline counted them."""

    prompt: int = 0
    completion: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class PipelineReply:
    """A pipeline's reply to one question."""

    hits: tuple[ForeignHit, ...]
    answer: str | None = None
    citations: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    stages: tuple[PipelineStage, ...] = ()
    usage: PipelineUsage | None = None
    ignored: tuple[str, ...] = ()  # names of further fields, which nothing reads

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
    _count_lists(value, owner)
    read = _validated(value, owner)
    return PipelineReply(
        tuple(map(_hit, read.hits)),
        read.answer,
        tuple(map(composed, read.citations)),
        tuple(read.rewritten),
        tuple(_stages(read.stages, owner)),
        None
        if read.usage is None
        else PipelineUsage(read.usage.prompt, read.usage.completion, read.usage.calls),
        tuple(_ignored(value)),
    )


def _count_lists(value: Mapping[str, Any], owner: str) -> None:
    """Before anything is read of them: a list of a hundred thousand is refused in no time."""
    stages = value.get("stages") or []
    if not isinstance(stages, list):
        raise BadInput(f"{owner}: stages is {_kind_of(stages)}; expected a list of stages")
    if len(stages) > MAX_STAGES:
        raise BadInput(f"{owner}: its reply has {len(stages):,} stages; at most {MAX_STAGES} are allowed")
    total = 0
    for where, hits in (
        ("hits", value["hits"]),
        *((f"stages.{at}.hits", one.get("hits")) for at, one in enumerate(stages) if isinstance(one, dict)),
    ):
        if not isinstance(hits, list):
            continue
        if len(hits) > MAX_HITS:
            raise BadInput(
                f"{owner}: {where} has {len(hits):,} hits; at most {MAX_HITS:,} are allowed: "
                "return the first k"
            )
        total += len(hits)
    if total > MAX_ALL_HITS:
        raise BadInput(
            f"{owner}: hits and stages have {total:,} hits together; at most {MAX_ALL_HITS:,} are allowed"
        )


def _validated(value: Any, owner: str) -> Any:
    from pydantic import ValidationError

    try:
        try:
            return _reader().validate_python(value)
        except ValidationError as error:
            if error.errors(include_url=False)[0]["type"] != "string_unicode":
                raise
            return _reader().validate_python(_whole(value))
    except RecursionError:
        raise BadInput(f"{owner}: its reply is nested too deeply") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))[:120]
        message = _MESSAGES.get(first["type"]) or first["msg"].removeprefix("Value error, ")
        given = "" if first["type"] == "missing" else f" (given: {shortened(repr(first['input']), 80)})"
        raise BadInput(f"{owner}: {place}: {message}{given}") from None


def _hit(read: Any) -> ForeignHit:
    return ForeignHit(
        read.doc_id, read.text, read.id, read.start, read.end, read.score, read.title, read.metadata
    )


def _stages(read: list[Any], owner: str) -> Iterator[PipelineStage]:
    """Yield the stages with the sources of their lists: those declared, or those implied by the order. A
    search starts its own list, a fusion takes all lists not consumed yet, any other stage the newest list.
    """
    taken: set[int] = set()
    with_lists: list[int] = []
    for at, one in enumerate(read):
        if one.sources is not None:
            sources = tuple(_earlier(name, read, at, owner) for name in one.sources)
        elif one.hits is None or one.kind == "retrieve":
            sources = ()
        elif one.kind == "fuse":
            sources = tuple(index for index in with_lists if index not in taken)
        else:
            sources = tuple(with_lists[-1:])
        if one.hits is not None:
            taken.update(sources)
            with_lists.append(at)
        hits = None if one.hits is None else tuple(map(_hit, one.hits))
        yield PipelineStage(one.name, one.kind, one.ms, hits, sources)


def _earlier(name: str, stages: list[Any], at: int, owner: str) -> int:
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
    yield from _unknown("", value, ("hits", "answer", "citations", "rewritten", "stages", "usage"))
    hits, stages = value["hits"], value.get("stages")
    if hits:
        known = ("doc_id", "text", "id", "start", "end", "score", "title", "metadata")
        yield from _unknown("hits.", hits[0], known)
    if stages:
        yield from _unknown("stages.", stages[0], ("name", "kind", "ms", "hits", "from"))


def _unknown(where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[str]:
    names = [str(name) for name in given if name not in known]
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


@cache
def _reader() -> TypeAdapter[Any]:
    """Made when first needed: a process without such a pipeline does without pydantic's models."""
    from pydantic import (
        AfterValidator,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Field,
        StringConstraints,
        TypeAdapter,
        model_validator,
    )
    from pydantic_core import PydanticCustomError

    def name(value: Any) -> Any:
        return str(value) if type(value) is int else value

    def named_kind(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        lowered = value.lower()
        return _ALSO.get(lowered, lowered)

    def small(value: dict[str, Any]) -> dict[str, Any]:
        try:
            text = json.dumps(value, allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"not plain JSON values: {error}") from None
        if len(text) > MAX_METADATA:
            raise ValueError(f"{len(text):,} characters of JSON; at most {MAX_METADATA:,} are allowed")
        if "\\ud" in text and _SURROGATES.search(json.dumps(value, ensure_ascii=False)):
            raise PydanticCustomError("string_unicode", "not Unicode text")
        return value

    Name = Annotated[  # noqa: N806 - types
        str, BeforeValidator(name), StringConstraints(min_length=1, max_length=MAX_NAME)
    ]
    Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]  # noqa: N806
    Title = Annotated[str, StringConstraints(max_length=MAX_TITLE)]  # noqa: N806
    Place = Annotated[int, Field(ge=0, le=MAX_COUNT)]  # noqa: N806
    Number = Annotated[float, Field(allow_inf_nan=False)]  # noqa: N806
    kinds = ", ".join(get_args(StageKind))

    class Model(BaseModel):
        model_config = ConfigDict(extra="ignore", strict=True)

    class HitModel(Model):
        doc_id: Name
        text: Text = ""
        id: Name | None = None
        start: Place | None = None
        end: Place | None = None
        score: Number | None = None
        title: Title = ""
        metadata: Annotated[dict[str, Any], AfterValidator(small)] = Field(default_factory=dict)

        @model_validator(mode="before")
        @classmethod
        def _without_nulls(cls, value: Any) -> Any:
            """Drop fields that are null, as most serializers write missing fields that way."""
            if isinstance(value, dict) and None in value.values():
                return {key: item for key, item in value.items() if item is not None}
            return value

        @model_validator(mode="after")
        def _offsets(self) -> HitModel:
            if (self.start is None) != (self.end is None):
                raise ValueError("start and end are character offsets and go together")
            if self.start is not None and self.end is not None and self.start > self.end:
                raise ValueError(f"start {self.start} is after end {self.end}")
            return self

    def allowed_kind(value: Any) -> Any:
        if value not in get_args(StageKind):
            raise ValueError(f"unknown kind of stage; allowed: {kinds}")
        return value

    class StageModel(Model):
        name: Name
        kind: Annotated[str, BeforeValidator(allowed_kind), BeforeValidator(named_kind)] = "other"
        ms: Annotated[float, Field(ge=0, le=MAX_COUNT, allow_inf_nan=False)] | None = None
        hits: list[HitModel] | None = None
        sources: Annotated[list[Name], Field(max_length=MAX_STAGES)] | None = Field(None, alias="from")

    class UsageModel(Model):
        prompt: Place = 0
        completion: Place = 0
        calls: Place = 0

    class ReplyModel(Model):
        hits: list[HitModel]
        answer: Text | None = None
        citations: Annotated[list[Name], Field(max_length=MAX_HITS)] = Field(default_factory=list)
        rewritten: Annotated[list[Text], Field(max_length=MAX_TEXTS)] = Field(default_factory=list)
        stages: list[StageModel] = Field(default_factory=list)
        usage: UsageModel | None = None

        @model_validator(mode="before")
        @classmethod
        def _without_nulls(cls, value: Any) -> Any:
            return {key: item for key, item in value.items() if item is not None or key == "hits"}

    for model in (HitModel, StageModel, UsageModel, ReplyModel):
        model.model_rebuild(_types_namespace={**globals(), **locals()})
    return TypeAdapter(ReplyModel)
