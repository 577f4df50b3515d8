"""Traces of other programs as stored Runs: their lists as passages of a corpus, their steps as spans."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from core.corpus.build import Progress
from core.corpus.corpus import Corpus
from core.corpus.passage_matching import Matched, Rule, describe
from core.corpus.source import slug
from core.domain.errors import BadInput, Unavailable
from core.domain.external import ForeignHit
from core.domain.outputs import NOTHING, Embedding, Output, Pass, Reply, Rerank, Reranked, Search
from core.domain.settings import Settings
from core.domain.types import Hit, Link, Passage, Query, Ranking, RouteResult, Run, Span, Tokens
from core.engine import returned_corpus
from core.steps.external import links_to
from core.store import Store
from core.store.trace_sources.values import FEEDBACK
from core.store.traces_in import ForeignSpan, ForeignTrace, in_words

INPUT = ("input.value", "langfuse.observation.input", "langfuse.trace.input", "traceloop.entity.input")
OUTPUT = ("output.value", "langfuse.observation.output", "langfuse.trace.output", "traceloop.entity.output")
MODEL = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model", "reranker.model_name")
PROMPT = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
COMPLETION = ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
ASKED = ("query", "question", "input", "query_str", "user_query", "text", "prompt", "content")
ANSWERED = ("answer", "output", "response", "result", "text", "content", "completion", "replies")
WRAPPED = ("inputs", "outputs", "message", "messages", "parts", "kwargs", "args", "data")
DEPTH = 5  # of objects in each other that a question or an answer is looked for in
UNSCORED = "none in the trace: 1/rank stands in their place"


@dataclass(slots=True)
class ImportedTraces:
    """The result of importing traces."""

    corpus: str
    runs: list[Run] = field(default_factory=list)
    known: list[str] = field(default_factory=list)  # ids of runs that an earlier import stored
    # the matching rule of each passage; None if unmatched
    rules: list[Rule | None] = field(default_factory=list)
    repeats: int = 0  # number of passages listed repeatedly
    spread: int = 0
    clashes: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # number of items left out, by reason
    feedback: list[tuple[Run, Mapping[str, Any]]] = field(default_factory=list)  # what was said of a run

    @property
    def matching(self) -> str:
        """Describe how the passages were matched."""
        return describe(self.rules, self.repeats, self.spread, self.clashes)

    @property
    def left_out(self) -> str:
        """Describe what was left out or repaired; "" for nothing."""
        return in_words(self.skipped)


class Opens(Protocol):
    """The engine attributes this module uses."""

    settings: Settings
    store: Store | None

    def corpus(self, name: str, /) -> Corpus: ...


def store_traces(
    engine: Opens,
    traces: Sequence[ForeignTrace],
    corpus: str | None = None,
    route: str | None = None,
    progress: Progress = lambda _stage, _done, _total: None,
    cancel: threading.Event | None = None,
) -> ImportedTraces:
    """Store a run for each of `traces` that is not stored yet: its passages are matched to `corpus`, by
    default to one made of them.

    `route` names their route; by default it is called after the traces' service. Raises BadInput if no
    corpus can be made, Unavailable without a store, and the errors of a build.
    """
    if engine.store is None:
        raise Unavailable("run storage is off, so traces cannot be imported")
    name = _route_name(traces, route)
    if corpus is None:
        corpus = slug(f"{name.replace('_', '-')}-traces")
        hits = [hit for trace in traces for span in trace.spans for hit in (*(span.hits or ()), *span.given)]
        if not any(hit.text for hit in hits):
            raise BadInput(
                "the traces have no text of a passage, so no corpus can be made of them; name the corpus of "
                "their passages with --corpus"
            )
        returned_corpus.keep(engine.settings, corpus, hits, progress=progress, cancel=cancel)
    stored = engine.store.present([run_id(trace, corpus) for trace in traces])
    found = imported(traces, engine.corpus(corpus), name, stored)
    engine.store.add_runs(found.runs)
    return found


def imported(
    traces: Sequence[ForeignTrace], corpus: Corpus, route: str, known: Collection[str] = ()
) -> ImportedTraces:
    """Convert traces to runs over `corpus`, in order, without those whose run is `known`."""
    found = ImportedTraces(corpus.name)
    for trace in traces:
        if (id := run_id(trace, corpus.name)) in known:
            found.known.append(id)
        elif not any(span.hits for span in trace.spans):
            found.skipped["traces without a retrieved passage"] += 1
        elif not (asked := question(trace)):
            found.skipped["traces without a question"] += 1
        else:
            run = _Reading(trace, corpus, found).run(asked, route)
            found.runs.append(run)
            said = [one for span in trace.spans for one in span.attributes.get(FEEDBACK) or ()]
            found.feedback += [(run, one) for one in said]
    return found


def _route_name(traces: Sequence[ForeignTrace], given: str | None) -> str:
    """Return the route name of these traces: the given one, else that of their service."""
    if given is None:
        given = next((span.service for trace in traces for span in trace.spans if span.service), "")
    try:
        return slug(given or "trace").replace("-", "_").replace(".", "_")
    except BadInput:
        return "trace"


def run_id(trace: ForeignTrace, corpus: str) -> str:
    """Return the id of a trace's run over a corpus, equal for every import."""
    return f"trace-{hashlib.sha256(f'{corpus}/{trace.id}'.encode()).hexdigest()[:16]}"


def question(trace: ForeignTrace) -> str:
    """Return a trace's question: the input of the root, else that of the first retriever; "" for none."""
    retrievers = [span for span in trace.spans if span.hits is not None]
    for span in (*trace.roots, *retrievers, *trace.spans):
        asked = _plain(span.text(*INPUT), ASKED) or _plain(_message(span, "input"), ASKED)
        if asked or (asked := span.text("gen_ai.retrieval.query.text", "reranker.query")):
            return asked
    return ""


class _Reading:
    """One trace being made a run; passages by id as they are met."""

    def __init__(self, trace: ForeignTrace, corpus: Corpus, found: ImportedTraces) -> None:
        self._trace, self._corpus, self._found = trace, corpus, found
        self._passages: dict[str, Passage] = {}
        self._zero = min(span.start for span in trace.spans)

    def run(self, asked: str, route: str) -> Run:
        trace = self._trace
        results = [self._result(name, title, spans) for name, title, spans in self._routes(route)]
        service = next((span.service for span in trace.spans if span.service), "")
        session = next(
            (s for span in trace.spans if (s := span.text("session.id", "langfuse.session.id"))), ""
        )
        settings: dict[str, Any] = {
            "source": "trace",
            "trace": trace.id,
            "service": service,
            "routes": [result.route for result in results],
            "answers": "all" if any(result.answer for result in results) else "none",
            **({"conversation": session} if session else {}),
        }
        created = datetime.fromtimestamp(self._zero / 1e9, UTC).isoformat(timespec="milliseconds")
        wall = max((result.start_ms + result.ms for result in results), default=0.0)
        return Run(
            run_id(trace, self._corpus.name),
            created,
            Query(asked),
            self._corpus.name,
            self._corpus.fingerprint,
            settings,
            tuple(results),
            self._passages,
            wall,
        )

    def _routes(self, route: str) -> list[tuple[str, str, tuple[ForeignSpan, ...]]]:
        """Return each route's name, title and spans. A trace is one route, unless RouteScope wrote it."""
        roots = self._trace.roots
        if len(roots) == 1 and {"run", "fingerprint"} <= _metadata(roots[0]).keys():
            children = [span for span in self._trace.spans if span.parent == roots[0].id]
            ours = [(span, _metadata(span).get("route")) for span in children]
            if ours and all(isinstance(name, str) and name for _, name in ours):
                return [(str(name), span.name, self._below(span)) for span, name in ours]
        return [(route, next((s.service for s in roots if s.service), "") or route, self._trace.spans)]

    def _below(self, top: ForeignSpan) -> tuple[ForeignSpan, ...]:
        inside = {top.id}
        grew = True
        while grew:
            more = {s.id for s in self._trace.spans if s.parent in inside} - inside
            grew, inside = bool(more), inside | more
        return tuple(
            replace(span, parent="") if span is top else span
            for span in self._trace.spans
            if span.id in inside
        )

    def _result(self, name: str, title: str, spans: tuple[ForeignSpan, ...]) -> RouteResult:
        roots = [span for span in spans if not span.parent]
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        lone = roots[0] if len(roots) == 1 and len(spans) > 1 else None
        steps = [span for span in spans if span is not lone]
        made = _Steps(steps, lone, start, self._ranking).made()
        final = made.final
        if lone is not None:
            end = max(end if lone.end <= lone.start else lone.end, lone.start)
            if lone.hits:
                final = self._returned(made, lone, start)
        failed = next((span.error for span in roots if span.error), None)
        ranking, origin = ((), None) if failed or final is None else final
        answer = next((text for span in roots if (text := self._answer(span))), None)
        return RouteResult(
            name,
            title,
            "failed" if failed else "ok",
            (end - start) / 1e6,
            (start - self._zero) / 1e6,
            (end - start) / 1e6,
            ranking,
            None if failed else answer,
            (),
            tuple(made.spans),
            {},
            failed,
            origin=origin,
        )

    def _returned(self, made: _Made, root: ForeignSpan, zero: int) -> tuple[Ranking, Link]:
        """Return the list that the root reports, linked to the last list that contains all of it."""
        ranking = self._ranking(root.hits or ())
        ids = [hit.passage.id for hit in ranking]
        for span in reversed(made.spans):
            if span.hits is not None and [id for id, _ in span.hits][: len(ids)] == ids:
                return ranking, Link("hits", span.id, len(ids))
        last = len(made.spans) + 1
        given = tuple((hit.passage.id, hit.score) for hit in ranking)
        links = made.links_of(ranking, [one for one in made.lists if one.id not in made.taken])
        output: Output = NOTHING if links else Search((question(self._trace),))
        began = max(0.0, (root.end - zero) / 1e6)
        made.spans.append(
            Span(last, None, f"result of {root.name}", "CHAIN", began, 0.0, {}, output, given, links)
        )
        return ranking, Link("hits", last, len(ids))

    def _answer(self, root: ForeignSpan) -> str | None:
        if root.kind in ("RETRIEVER", "RERANKER", "EMBEDDING"):
            return None
        text = root.text(*OUTPUT)
        return _plain(text, ANSWERED) or _plain(_message(root, "output"), ANSWERED) or None

    def _ranking(self, hits: Sequence[ForeignHit]) -> Ranking:
        """Convert a list to passages of the corpus; if any score is missing, all score 1 / rank."""
        matched = self._corpus.matcher.match(hits)
        self._count(matched)
        scored = all(hit.score is not None for hit in hits)
        ranking = []
        for rank, one in enumerate(matched.placed, 1):
            passage = self._passages.setdefault(one.passage.id, one.passage)
            score = hits[one.at].score
            ranking.append(Hit(passage, score if scored and score is not None else 1.0 / rank))
        return tuple(ranking)

    def _count(self, matched: Matched) -> None:
        found = self._found
        found.rules += matched.rules
        found.repeats += matched.repeats
        found.spread += matched.spread
        found.clashes += matched.clashes


@dataclass(slots=True)
class _Made:
    """The spans of a route, its lists, and its result: the last list that no step consumed."""

    spans: list[Span] = field(default_factory=list)
    lists: list[Span] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    rankings: dict[int, Ranking] = field(default_factory=dict)

    @property
    def final(self) -> tuple[Ranking, Link] | None:
        free = [span for span in self.lists if span.id not in self.taken and span.hits]
        if not free:
            return None
        last = max(free, key=lambda span: (span.start_ms + span.ms, span.id))
        ranking = self.rankings[last.id]
        return ranking, Link("hits", last.id, len(ranking))

    def links_of(self, ranking: Ranking, candidates: Sequence[Span]) -> tuple[Link, ...]:
        """Link a list to the lists its passages come from, plus one of unknown origin for the rest."""
        ids = {hit.passage.id for hit in ranking}
        given = [span for span in candidates if span.hits and ids & {id for id, _ in span.hits}]
        if not given:
            return ()
        return links_to(ids, [(span.id, [id for id, _ in span.hits or ()]) for span in given])


class _Steps:
    """The spans of one route, numbered in the order of their start. A list composed of lists below it gets a
    span of its own after them: no step receives a later result.
    """

    def __init__(
        self,
        spans: Sequence[ForeignSpan],
        root: ForeignSpan | None,
        zero: int,
        ranking: Callable[[Sequence[ForeignHit]], Ranking],
    ) -> None:
        self._spans, self._root, self._zero, self._ranking = spans, root, zero, ranking
        self._numbers = {span.id: number for number, span in enumerate(spans, 1)}
        self._made = _Made()

    def made(self) -> _Made:
        """Return the spans with their outputs."""
        parents = {span.parent for span in self._spans if span.hits}
        own = {span.id: span for span in self._spans}
        above: set[str] = set()  # spans with a list somewhere below them
        for id in parents:
            while id in own and id not in above:
                above.add(id)
                id = own[id].parent
        late: list[ForeignSpan] = []
        for span in self._spans:
            waits = span.hits is not None and span.id in above
            self._add(span, None if waits else span.hits)
            late += [span] if waits else []
        for span in late:
            self._result_of(span)
        return self._made

    def _add(self, span: ForeignSpan, hits: tuple[ForeignHit, ...] | None) -> None:
        number = self._numbers[span.id]
        ranking = None if hits is None else self._ranking(hits)
        links: tuple[Link, ...] = ()
        attributes = {"time": "from the trace"}
        if ranking is not None and hits is not None:
            if hits and any(hit.score is None for hit in hits):
                attributes["scores"] = UNSCORED
            if span.kind != "RETRIEVER":
                links = self._linked(span, ranking)
        output = self._output(span, ranking, links)
        scored = None if ranking is None else tuple((hit.passage.id, hit.score) for hit in ranking)
        args: dict[str, Any] = {}
        if text := span.text("gen_ai.retrieval.query.text", "reranker.query", *INPUT):
            args["text"] = text
        if top := span.number("reranker.top_k", "gen_ai.retrieval.top_k"):
            args["k"] = top
        used = (span.number(*PROMPT), span.number(*COMPLETION))
        kind = "CHAIN" if ranking is not None and span.kind == "RETRIEVER" and links else span.kind
        made = Span(
            number,
            self._numbers.get(span.parent),
            span.name,
            kind,
            (span.start - self._zero) / 1e6,
            (span.end - span.start) / 1e6,
            args,
            output,
            scored,
            links,
            {},
            attributes,
            Tokens(*used) if any(used) else None,
            calls=int(span.kind == "LLM"),
            error=span.error,
        )
        self._keep(made, ranking)

    def _result_of(self, span: ForeignSpan) -> None:
        """Add a span for the list that a step composed of the searches below it."""
        ranking = self._ranking(span.hits or ())
        inside = [
            one for one in self._made.lists if one.id not in self._made.taken and self._under(one, span)
        ]
        links = self._made.links_of(ranking, inside)
        number = len(self._made.spans) + 1
        scored = tuple((hit.passage.id, hit.score) for hit in ranking)
        attributes = {"time": "part of the step above it"}
        if any(hit.score is None for hit in span.hits or ()):
            attributes["scores"] = UNSCORED
        output: Output = Pass() if links else Search((span.text(*INPUT),))
        made = Span(
            number,
            self._numbers[span.id],
            f"result of {span.name}",
            "CHAIN",
            (span.end - self._zero) / 1e6,
            0.0,
            {},
            output,
            scored,
            links,
            {},
            attributes,
        )
        self._keep(made, ranking)

    def _keep(self, made: Span, ranking: Ranking | None) -> None:
        self._made.spans.append(made)
        if ranking is not None:
            self._made.lists.append(made)
            self._made.rankings[made.id] = ranking
            self._made.taken |= {link.span for link in made.links if link.span is not None}

    def _under(self, one: Span, top: ForeignSpan) -> bool:
        parents = {span.id: span.parent for span in self._made.spans}
        at, above = one.parent, self._numbers[top.id]
        while at is not None and at != above:
            at = parents.get(at)
        return at == above

    def _linked(self, span: ForeignSpan, ranking: Ranking) -> tuple[Link, ...]:
        """Link a step to its input lists: those with the passages it reports as input, else with its
        output.
        """
        given = self._ranking(span.given) if span.given else ranking
        ended = [
            one for one in self._made.lists if one.start_ms + one.ms <= (span.end - self._zero) / 1e6 + 1
        ]
        free = [one for one in ended if one.id not in self._made.taken]
        return self._made.links_of(given, free) or self._made.links_of(given, ended[-1:])

    def _output(self, span: ForeignSpan, ranking: Ranking | None, links: tuple[Link, ...]) -> Output:
        model = span.text(*MODEL)
        if ranking is not None and span.kind == "RERANKER":
            return Rerank(model or span.name, tuple(self._order(ranking, links)))
        if ranking is not None and not links:
            text = span.text("gen_ai.retrieval.query.text", *INPUT)
            return Search((_plain(text, ASKED) or text,) if text else (), model)
        if span.kind == "LLM":
            return Reply(_plain(_message(span, "output"), ANSWERED) or span.text(*OUTPUT), model)
        if span.kind == "EMBEDDING":
            texts = [
                value
                for name, value in sorted(span.attributes.items())
                if name.endswith(".embedding.text") and isinstance(value, str)
            ]
            return Embedding(tuple(texts) or ((span.text(*INPUT),) if span.text(*INPUT) else ()))
        return NOTHING if ranking is not None or not span.text(*OUTPUT) else Pass(span.text(*OUTPUT))

    def _order(self, ranking: Ranking, links: tuple[Link, ...]) -> Iterator[Reranked]:
        before: dict[str, tuple[int, float]] = {}
        spans = {span.id: span for span in self._made.spans}
        for link in links:
            given = spans[link.span].hits or () if link.span is not None else ()
            for rank, (id, score) in enumerate(given, 1):
                before.setdefault(id, (rank, score))
        for hit in ranking:
            if hit.passage.id in before:
                yield Reranked(hit.passage.id, *before[hit.passage.id], hit.score)


def _metadata(span: ForeignSpan) -> dict[str, Any]:
    """Return a span's metadata, from JSON or from separate attributes, as Phoenix writes them."""
    prefix = "metadata."
    own = {key.removeprefix(prefix): v for key, v in span.attributes.items() if key.startswith(prefix)}
    try:
        found = json.loads(span.text("metadata") or "{}")
    except (ValueError, RecursionError):
        return own
    return {**own, **found} if isinstance(found, dict) else own


def _message(span: ForeignSpan, side: str) -> str:
    """Return the last message of a model call in the conventions of OpenInference, OpenTelemetry or
    traceloop.
    """
    stated = span.text(f"gen_ai.{side}.messages")
    if stated:
        return stated
    old = "prompt" if side == "input" else "completion"
    found = ""
    for prefix, part in ((f"llm.{side}_messages.", "message.content"), (f"gen_ai.{old}.", "content")):
        at = 0
        while isinstance(text := span.attributes.get(f"{prefix}{at}.{part}"), str):
            found, at = text or found, at + 1
    return found


def _plain(text: str, names: Sequence[str]) -> str:
    """Extract the readable question or answer: the text itself, or the matching field of a JSON value."""
    if text[:1] not in '[{"' or not text:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _found(value, names, DEPTH) or ""


def _found(value: Any, names: Sequence[str], depth: int) -> str | None:
    if isinstance(value, str):
        return value
    if depth <= 0:
        return None
    if isinstance(value, list):
        return next((text for one in reversed(value) if (text := _found(one, names, depth - 1))), None)
    if isinstance(value, Mapping):
        inner = (value[name] for name in (*names, *WRAPPED) if value.get(name))
        return next((text for one in inner if (text := _found(one, names, depth - 1))), None)
    return None
