"""The nouns: frozen, without behaviour beyond reading their own fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SpanKind = Literal[
    "RETRIEVER", "RERANKER", "LLM", "EMBEDDING", "CHAIN", "EVALUATOR", "GUARDRAIL", "TOOL", "AGENT"
]  # OpenInference's span kinds, so that a trace exports without a mapping table
Status = Literal["ok", "failed", "unavailable", "timeout", "cancelled"]
Reuse = Literal["cache", "recording"]
AnswerOrder = Literal["best first", "best at both ends"]
AnswerBy = Literal["model", "extract"]
Scored = tuple[tuple[str, float], ...]  # (passage id, score), best first: a ranking without its texts


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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a route returns: its final ranking and, if asked for, a text with the passages it cites.

    `abstained`: the text says that there is no answer, or what is missing for one.
    """

    hits: Ranking
    text: str | None = None
    citations: tuple[str, ...] = ()
    abstained: bool = False


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
    """Model tokens; `cached` of the prompt tokens were served from the endpoint's prompt cache."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """One step of one route.

    `start_ms` and `ms` are on the route's own clock, as if it ran alone: a step whose work another route did
    (`shared_with` = "route#span") or that came from the cache or a recording (`cached`) keeps the full time
    that the work took when it was done. `hits` is the step's whole list, compact. `ms` is measured, never
    estimated.
    """

    id: int
    parent: int | None
    name: str
    kind: SpanKind
    start_ms: float
    ms: float
    inputs: Mapping[str, Any] = field(default_factory=dict)
    output: Any = None
    hits: Scored | None = None
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
    long.
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
    knobs: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    abstained: bool = False


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
