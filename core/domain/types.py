"""The nouns: frozen, without behaviour beyond reading their own fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, SupportsIndex, overload

from core.domain.outputs import NOTHING, Output
from core.domain.outputs import Scored as Scored
from core.domain.text import composed

SpanKind = Literal[
    "RETRIEVER", "RERANKER", "LLM", "EMBEDDING", "CHAIN", "EVALUATOR", "GUARDRAIL", "TOOL", "AGENT"
]  # OpenInference's span kinds, so that a trace exports without a mapping table
Status = Literal["ok", "failed", "unavailable", "timeout", "cancelled"]
Reuse = Literal["cache", "recording"]
AnswerOrder = Literal["best first", "best at both ends"]
AnswerBy = Literal["model", "extract"]
AnswerStatus = Literal["not asked", "written", "failed"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document; `id` is stable: the document's id and the character offsets [start, end)."""

    id: str
    doc_id: str
    title: str
    text: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with the score its list gave it; the rank is the position in the list, never stored."""

    passage: Passage
    score: float


Ranking = tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a list or a vector: the part [start, stop) of the result of `span`."""

    span: int
    start: int
    stop: int


class TracedTuple(tuple[Any, ...]):
    """A tuple produced by a step, most often a ranking, that knows its span.

    A slice keeps its origin. Tuples that Python builds from several (`+`, a comprehension, `sorted`) have no
    origin: the route created them itself.
    """

    origin: Origin
    content: list[bytes]  # cached content hash, shared by copies

    def __new__(cls, items: Iterable[Any], origin: Origin) -> Self:
        made = super().__new__(cls, items)
        made.origin = origin
        made.content = items.content if isinstance(items, TracedTuple) else []
        return made

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, at: slice, /) -> tuple[Any, ...]: ...
    def __getitem__(self, at: SupportsIndex | slice, /) -> Any:
        found = super().__getitem__(at)
        if not isinstance(at, slice):
            return found
        start, stop, stride = at.indices(len(self))
        if stride != 1:
            return found
        begin = self.origin.start + start
        return TracedTuple(found, Origin(self.origin.span, begin, begin + max(0, stop - start)))


@dataclass(frozen=True, slots=True)
class Link:
    """An argument of a step that came from another step (an OpenTelemetry span link)."""

    arg: str  # the argument's name, with the place if it holds several: "lists[1]"
    span: int | None  # None if the route created the argument itself
    size: int  # number of items taken from the result of `span`
    start: int = 0  # place of the first item


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message of the conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """One turn that is remembered of a named session; `number` counts from 1 and is never given twice.

    `run` is the run it was said in, empty if none. A turn of the question's own conversation has no session.
    """

    session: str
    number: int
    role: Literal["user", "assistant"]
    text: str
    created: str = ""  # ISO 8601, UTC
    run: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """The question and the conversation before it, oldest turn first."""

    text: str
    history: tuple[Turn, ...] = ()

    def __post_init__(self) -> None:
        """Compose the characters (NFC), as those of documents are."""
        if not self.text.isascii():
            object.__setattr__(self, "text", composed(self.text))


@dataclass(frozen=True, slots=True)
class AnswerBasis:
    """The input for writing an answer."""

    question: str  # as the route read it
    shown: int  # number of first hits to read
    excerpts: Mapping[str, str] = field(default_factory=dict)  # by passage, the text that replaces its own


@dataclass(frozen=True, slots=True)
class Answer:
    """A route's result: its final ranking and, if requested, a text with the passages it cites."""

    hits: Ranking
    text: str | None = None
    citations: tuple[str, ...] = ()
    abstained: bool = False  # True if the text says that there is no answer, or what is missing
    error: str | None = None  # why a requested answer could not be written
    basis: AnswerBasis | None = None  # the input for writing an answer later
    # the step result that the text comes from
    source: object = field(default=None, compare=False, repr=False)


ASKED_BY = "asked by"  # in the settings of a run: the account of who asked
EVIDENCE = 0.58  # chosen on 26 questions of clapnq-dev and HotpotQA with the default model: AUC .91


@dataclass(frozen=True, slots=True)
class AnswerStyle:
    """The way answers are written."""

    by: AnswerBy = "model"  # by the language model, or by copying sentences
    order: AnswerOrder = "best first"  # the order in which the model reads the passages
    # the model abstains if P(Yes) that the passages contain the answer is below this, 0 to 1
    evidence: float = EVIDENCE


@dataclass(frozen=True, slots=True)
class Tokens:
    """Model tokens of calls."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0  # of the prompt tokens: served from the endpoint's prompt cache
    reasoning: int = 0  # of the completion tokens: spent before the answer


@dataclass(frozen=True, slots=True)
class Span:
    """One step of one route.

    `start_ms` and `ms` are on the route's own clock, as if it ran alone: a step whose work another route did
    (`shared_with` = "route#span"), or that came from the cache or a recording (`cached`), counts the full
    time the work originally took. `ms` is measured, never estimated.
    """

    id: int
    parent: int | None
    name: str
    kind: SpanKind
    start_ms: float
    ms: float
    # the caller's arguments as plain JSON, without those that `links` name
    args: Mapping[str, Any] = field(default_factory=dict)
    output: Output = NOTHING  # the result; `attributes` describe how it was computed
    hits: Scored | None = None  # the whole ranking; None if the step returns none
    links: tuple[Link, ...] = ()
    # the route parameter that set an argument ("k", "weights.1")
    set_by: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    tokens: Tokens | None = None
    cost: float | None = None
    calls: int = 0  # model calls made (or, for a reused step, that were made) under this span
    shared_with: str | None = None
    cached: Reuse | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RouteResult:
    """The result of one route; a failed route keeps its spans."""

    route: str
    title: str
    status: Status
    ms: float  # the route's time as if it ran alone
    start_ms: float = 0.0  # start in this run
    wall_ms: float = 0.0  # duration in this run
    hits: Ranking = ()
    answer: str | None = None
    citations: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    abstained: bool = False
    origin: Link | None = None  # the origin of the final ranking; None without a ranking
    basis: AnswerBasis | None = None
    answer_error: str | None = None  # why a requested answer could not be written; the ranking stands
    answer_span: int | None = None  # the step that wrote the answer; None if the route composed it

    @property
    def answer_status(self) -> AnswerStatus:
        """Return the status of the answer."""
        if self.answer_error is not None:
            return "failed"
        return "not asked" if self.answer is None else "written"


@dataclass(frozen=True, slots=True)
class Run:
    """One question over one corpus by many routes; `load(save(run)) == run`.

    `passages` holds every passage any span or result names. `settings` are plain JSON values.
    """

    id: str
    created: str  # ISO 8601, UTC
    query: Query
    corpus: str
    fingerprint: str
    settings: Mapping[str, Any]
    results: tuple[RouteResult, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    wall_ms: float = 0.0
    status: Literal["running", "done", "cancelled", "interrupted"] = "done"
