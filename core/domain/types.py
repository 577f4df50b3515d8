"""The nouns: frozen, without behaviour beyond reading their own fields."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, SupportsIndex, overload

from core.domain.outputs import NOTHING, Output
from core.domain.outputs import Scored as Scored

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
    """Where a list or a vector comes from: the part [start, stop) of what the span `span` made."""

    span: int
    start: int
    stop: int


class TracedTuple(tuple[Any, ...]):
    """What a step made, a ranking most often: a tuple like any other that knows the span it is from.

    A slice keeps its origin. What Python makes of several (`+`, a comprehension, `sorted`) has none: then the
    route made it by hand. `content` is where those who compare it by a hash keep that; copies share it.
    """

    origin: Origin
    content: list[bytes]

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
    """An argument of a step that came from another one (an OpenTelemetry span link): `size` items of what
    `span` made, from `start` on. `span` is None where the route made the argument by hand.

    `arg` is the argument's name, with its place where it holds several: "lists[1]".
    """

    arg: str
    span: int | None
    size: int
    start: int = 0


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
            object.__setattr__(self, "text", unicodedata.normalize("NFC", self.text))


@dataclass(frozen=True, slots=True)
class AnswerBasis:
    """What an answer is written from: the question as the route took it, the first `shown` hits, and by
    passage the text that stands in its place.
    """

    question: str
    shown: int
    excerpts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a route returns: its final ranking and, if asked for, a text with the passages it cites.

    `abstained`: the text says that there is no answer, or what is missing for one. `error`: why an answer
    that was asked for could not be written. `basis`: what one is to be written from, where it may be later.
    `source`: what a step gave and the text is of.
    """

    hits: Ranking
    text: str | None = None
    citations: tuple[str, ...] = ()
    abstained: bool = False
    error: str | None = None
    basis: AnswerBasis | None = None
    source: object = field(default=None, compare=False, repr=False)


ASKED_BY = "asked by"  # in the settings of a run: the account of who asked
EVIDENCE = 0.58  # chosen on 26 questions of clapnq-dev and HotpotQA with the default model: AUC .91


@dataclass(frozen=True, slots=True)
class AnswerStyle:
    """How answers are written: by the language model or by copying sentences, and in which order of the
    passages the model reads them. It abstains where it thinks it less likely than `evidence`, 0 to 1,
    that they hold the answer.
    """

    by: AnswerBy = "model"
    order: AnswerOrder = "best first"
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
    (`shared_with` = "route#span") or that came from the cache or a recording (`cached`) keeps the full time
    that the work took when it was done. `ms` is measured, never estimated.

    `args` is what the caller gave, as plain JSON; what another step made is not repeated there: `links` name
    it. `set_by` gives, for an argument ("k", "weights.1"), the route's parameter that set it. `output` is
    what the step came to, `hits` its whole list, compact, None where it makes none. `attributes` say how the
    work was done, for people.
    """

    id: int
    parent: int | None
    name: str
    kind: SpanKind
    start_ms: float
    ms: float
    args: Mapping[str, Any] = field(default_factory=dict)
    output: Output = NOTHING
    hits: Scored | None = None
    links: tuple[Link, ...] = ()
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
    """What one route did; a failed route keeps the spans it has.

    `ms` is the route's time as if alone; `start_ms` and `wall_ms` are when it ran in this run and for how
    long. `origin` is where the final ranking comes from, None where no ranking was made. An answer that was
    asked for and failed takes nothing from the ranking: `answer_error` says why. `answer_span` is the step
    that wrote the answer, None where the route put it together itself.
    """

    route: str
    title: str
    status: Status
    ms: float
    start_ms: float = 0.0
    wall_ms: float = 0.0
    hits: Ranking = ()
    answer: str | None = None
    citations: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    abstained: bool = False
    origin: Link | None = None
    basis: AnswerBasis | None = None
    answer_error: str | None = None
    answer_span: int | None = None

    @property
    def answer_status(self) -> AnswerStatus:
        """What became of the answer."""
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
