"""A step as stored runs had it before steps recorded what they were given, and what its name tells of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from core.domain.types import Link, Reuse, RouteResult, Scored, SpanKind, Tokens

Document = dict[str, Any]
How = Literal["value", "list", "lists", "vector", "made"]
SEARCHES = ("RETRIEVER", "TOOL")
_HITS = re.compile(r"(\d+) hits")
_MARKS: Mapping[str, How] = {"#": "list", "*": "lists", "~": "vector", "@": "made"}

# The parameters of every step there was. "=": it makes a ranking; "#": a ranking, "*": several; "~": a
# vector, or what stands for one; "@": what another step gave. Any other input was added by the step itself.
STEPS: Mapping[str, str] = {
    "act on the grades": "verdict@ lack",
    "analyse the question": "query dense# strange",
    "answer from one passage and judge it": "text passage",
    "answer from the whole corpus": "text hits#",
    "answer from what the model knows": "text",
    "answer without passages": "text",
    "answer without searching": "text",
    "append the rest": "= first# rest#",
    "ask for the sentences that help": "text hits#",
    "ask how sure it is": "text answer",
    "ask in another way": "text found# grades@ tried",
    "ask the tables": "question source tables repairs rows",
    "check the answer": "text answer hits#",
    "choose a route": "asked",
    "choose again or stop": "chosen steps collected lacking",
    "choose an action": "question done offered",
    "choose sentences": "text passage",
    "choose tables": "text links@ most source",
    "choose the best path": "tree@ hits#",
    "choose the best segment": "segments@ weights",
    "choose the side": "asked@ hits#",
    "classify the question": "text history by",
    "collect what is new": "= collected# found# each keep",
    "copy the best sentences": "text hits# excerpts floor",
    "copy words from the passages": "question hits# most",
    "count what was found": "question hits# collected# each",
    "criticise claim by claim": "text hits# draft",
    "criticise the draft and decide": "text hits# drafts earlier@ rounds",
    "decide by confidence": "text unaided@ how threshold",
    "decide whether to look it up": "text threshold",
    "decide whether to retrieve": "text when threshold",
    "do the passages answer the question": "question collected#",
    "does the question stand alone": "found# enough",
    "drop near-duplicates": "= hits# by threshold",
    "drop passages far from the question": "= text hits# floor",
    "embed": "text",
    "embed tokens": "text",
    "fill in earlier answers": "text answers question",
    "fuse by fitted weights": "= lists* fitted candidates called of fingerprint",
    "fuse by normalised scores": "= lists* weights norm",
    "fuse by reciprocal rank": "= lists* k weights",
    "go on or stop": "done steps new lacking",
    "grade and decide": "text hits# others# low high",
    "grade passage": "text passage",
    "grade passage from 1 to 5": "text passage",
    "grade the round and decide": "text searched hits# earlier threshold gain rounds",
    "is it another question": "question tried",
    "is the answer in the passages": "text hits# excerpts threshold",
    "keep a draft": "drafts@ weighed@ reason",
    "keep by grade": "= hits# verdict@",
    "keep the best paths": "tree@ grown@",
    "keep the best round": "= found* rounds@ reason",
    "keep the strips that matter": "text hits# floor titled",
    "list the cited passages": "= hits# citations",
    "look for a short answer": "question hits#",
    "look for exact terms": "text",
    "look up values": "text source",
    "look up words": "= words collected#",
    "mean of embeddings": "texts question",
    "mean with recalled turns": "text recalled# weight",
    "measure the passages": "text hits# others#",
    "merge by best score": "= lists* texts",
    "order by grade": "= hits# verdict@",
    "order by marginal relevance": "= asked~ hits# lam k pool relevance",
    "order by the segments written": "= hits# segments@ tree@ weights",
    "put recalled turns before the question": "text recalled#",
    "read the passages together": "text hits#",
    "reason one sentence": "question collected# said",
    "refine the answer": "text hits# draft feedback claims",
    "reply without a search": "query",
    "rerank by BM25, cosine and MaxSim": "= text hits#",
    "rerank by the model's grades": "= text hits#",
    "rerank with a model of pairs": "= text hits#",
    "rewrite as a standalone question": "query",
    "run SQL": "sql rows source",
    "say the result": "asked@",
    "say what is missing": "text verdict@ lack",
    "score by matching tokens": "= asked~ lists* candidates",
    "search BM25": "= text k engine",
    "search BM25 of keys": "= keys text k",
    "search all token vectors": "= asked~ k",
    "search learned term weights": "= text k",
    "search the conversation": "= text decay relevance k",
    "search the web": "= text k",
    "search vectors": "= vector~ k",
    "search vectors of keys": "= keys vector~ k",
    "search with each sample": "texts k",
    "split into simpler questions": "text n in_turn",
    "take the whole corpus": "=",
    "unite the lists": "= lists* texts",
    "was it asked before": "action words done",
    "write SQL": "text tables links@ failed source",
    "write a more general question": "text",
    "write a segment for each passage": "text before hits# threshold",
    "write and run SQL": "text tables links@ repairs rows source",
    "write answer": "text hits# excerpts order evidence",
    "write hypothetical passages": "text n instruction",
    "write query variants": "text n",
    "write the excerpts": "hits# strips@",
    "write web search keywords": "text",
}


@dataclass(frozen=True, slots=True)
class Earlier:
    """A span of format 1: `inputs` are its arguments, with rankings told by their length ("50 hits"), and
    what the step added of its own; `output` is any JSON.
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
    calls: int = 0
    shared_with: str | None = None
    cached: Reuse | None = None
    error: str | None = None

    @property
    def ranks(self) -> bool:
        """Whether it made a ranking: then () is an empty one, and else no more than an empty result."""
        if self.hits is None:
            return False
        if self.name in STEPS:
            return self.name in _RANKS
        return bool(self.hits) or self.kind in (*SEARCHES, "RERANKER")

    @property
    def asked_model(self) -> bool:
        """Whether it is a call of a model, and no step."""
        return self.kind == "LLM" and self.name.startswith("ask ") and self.name not in STEPS

    @property
    def linked(self) -> Iterable[tuple[str, How]]:
        """The parameters that other steps may have given."""
        known = _LINKED.get(self.name)
        return known if known is not None else self.parameters.items()

    @property
    def parameters(self) -> Mapping[str, How]:
        """Its parameters, and what they take, in their order; some may not be stored."""
        known = _PARAMETERS.get(self.name)
        if known is None:
            return {name: _taken(name, value) for name, value in self.inputs.items()}
        return known


@dataclass(frozen=True, slots=True)
class Around:
    """What the outcome of a step is told by besides its own span: the steps of its route and their links, by
    id, and the route's result.
    """

    spans: Mapping[int, Earlier]
    links: Mapping[int, Sequence[Link]]
    result: RouteResult
    below: Callable[[Earlier], list[Earlier]]  # the steps within a step, also where another route did it

    def given(self, span: Earlier, arg: str) -> Scored:
        """The ranking that an argument was; () where that is not known."""
        link = next((one for one in self.links[span.id] if one.arg == arg), None)
        if link is None or link.span is None:
            return ()
        return (self.spans[link.span].hits or ())[link.start : link.start + link.size]


Alone = Callable[[Earlier], Document]  # gives an outcome by the step's own span
Among = Callable[[Earlier, Around], Document]


def _parameters(marked: str) -> dict[str, How]:
    listed = marked.removeprefix("=").split()
    return {one.rstrip("#*~@"): _MARKS.get(one[-1], "value") for one in listed}


_RANKS = frozenset(name for name, marked in STEPS.items() if marked.startswith("="))
_PARAMETERS = {name: _parameters(marked) for name, marked in STEPS.items()}
_LINKED = {
    name: [one for one in all_of.items() if one[1] != "value" or one[0] in ("texts", "tables")]
    for name, all_of in _PARAMETERS.items()
}


def _taken(name: str, value: Any) -> How:
    """What a parameter of a step that is not known takes, by what was stored of it."""
    if size_of(value):
        return "list"
    return "lists" if name == "lists" and isinstance(value, list) else "value"


def size_of(value: Any) -> int | None:
    """How many passages a stored argument had: "50 hits", or [] for none; None for what is no ranking."""
    if value == [] and isinstance(value, list):
        return 0
    match = _HITS.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def ids(hits: Scored | None) -> tuple[str, ...]:
    """The passages of a ranking, in its order."""
    return tuple([hit[0] for hit in hits]) if hits else ()
