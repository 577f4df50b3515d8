"""Traces of other programs as stored Runs: their lists as passages of a corpus, their steps as spans."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from core.corpus.build import Progress
from core.corpus.corpus import Corpus
from core.corpus.passage_matching import Matched, Rule
from core.corpus.source import slug
from core.domain.errors import BadInput, Unavailable
from core.domain.external import ForeignHit
from core.domain.outputs import NOTHING, Embedding, Output, Pass, Reply, Rerank, Reranked, Search
from core.domain.types import Link, Passage, Query, Ranking, RouteResult, Run, Span, Tokens
from core.engine import returned_corpus
from core.engine.contexts import ContextFactory
from core.steps.external import links_to, ranking_of
from core.store.trace_sources.values import FEEDBACK, opened
from core.store.traces_in import OUTPUTS, ForeignSpan, ForeignTrace

INPUT = ("input.value", "langfuse.observation.input", "langfuse.trace.input", "traceloop.entity.input")
OUTPUT = (*OUTPUTS, "langfuse.trace.output")
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
    matches: list[Matched] = field(default_factory=list)  # of each list in the traces
    skipped: Counter[str] = field(default_factory=Counter)  # number of items left out, by reason
    feedback: list[tuple[Run, Mapping[str, Any]]] = field(default_factory=list)  # what was said of a run

    @property
    def rules(self) -> list[Rule | None]:
        """Return the matching rule of each passage; None if unmatched."""
        return [rule for one in self.matches for rule in one.rules]


def store_traces(
    engine: ContextFactory,
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
    called = _service(span for trace in traces for span in trace.spans) if route is None else route
    try:
        name = slug(called or "trace").replace("-", "_").replace(".", "_")
    except BadInput:
        name = "trace"
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
            run = _Reading(trace, corpus, found.matches).run(asked, route)
            found.runs.append(run)
            found.feedback += [(run, f) for span in trace.spans for f in span.attributes.get(FEEDBACK) or ()]
    return found


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


def _service(spans: Iterable[ForeignSpan]) -> str:
    return next((span.service for span in spans if span.service), "")


class _Reading:
    """One trace being made a run; passages by id as they are met."""

    def __init__(self, trace: ForeignTrace, corpus: Corpus, matches: list[Matched]) -> None:
        self._trace, self._corpus, self._matches = trace, corpus, matches
        self._passages: dict[str, Passage] = {}
        self._zero = min(span.start for span in trace.spans)

    def run(self, asked: str, route: str) -> Run:
        trace = self._trace
        results = [self._result(name, title, spans) for name, title, spans in self._routes(route)]
        sessions = (span.text("session.id", "langfuse.session.id") for span in trace.spans)
        session = next(filter(None, sessions), "")
        settings: dict[str, Any] = {
            "source": "trace",
            "trace": trace.id,
            "service": _service(trace.spans),
            "routes": [result.route for result in results],
            "answers": "all" if any(result.answer for result in results) else "none",
            **({"conversation": session} if session else {}),
        }
        return Run(
            id=run_id(trace, self._corpus.name),
            created=datetime.fromtimestamp(self._zero / 1e9, UTC).isoformat(timespec="milliseconds"),
            query=Query(asked),
            corpus=self._corpus.name,
            fingerprint=self._corpus.fingerprint,
            settings=settings,
            results=tuple(results),
            passages=self._passages,
            wall_ms=max((result.start_ms + result.ms for result in results), default=0.0),
        )

    def _routes(self, route: str) -> list[tuple[str, str, tuple[ForeignSpan, ...]]]:
        """Return each route's name, title and spans. A trace is one route, unless RouteScope wrote it."""
        roots = self._trace.roots
        if len(roots) == 1 and {"run", "fingerprint"} <= _metadata(roots[0]).keys():
            children = [span for span in self._trace.spans if span.parent == roots[0].id]
            ours = [(span, _metadata(span).get("route")) for span in children]
            if ours and all(isinstance(name, str) and name for _, name in ours):
                return [(str(name), span.name, self._below(span)) for span, name in ours]
        return [(route, _service(roots) or route, self._trace.spans)]

    def _below(self, top: ForeignSpan) -> tuple[ForeignSpan, ...]:
        """Return a span as a root, and all spans below it."""
        found = {top.id: replace(top, parent="")}
        found |= {span.id: span for span in self._trace.spans if span.parent in found}
        return tuple(found.values())

    def _result(self, name: str, title: str, spans: tuple[ForeignSpan, ...]) -> RouteResult:
        roots = [span for span in spans if not span.parent]
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        lone = roots[0] if len(roots) == 1 and len(spans) > 1 else None
        steps = _Steps([span for span in spans if span is not lone], start, self._ranking)
        final = steps.final
        if lone is not None:
            end = max(end if lone.end <= lone.start else lone.end, lone.start)
            if lone.hits:
                final = steps.returned(lone, question(self._trace))
        failed = next((span.error for span in roots if span.error), None)
        ranking, origin = ((), None) if failed or final is None else final
        return RouteResult(
            name,
            title,
            "failed" if failed else "ok",
            ms=(end - start) / 1e6,
            start_ms=(start - self._zero) / 1e6,
            wall_ms=(end - start) / 1e6,
            hits=ranking,
            answer=None if failed else next(filter(None, map(_answer, roots)), None),
            spans=tuple(steps.spans),
            error=failed,
            origin=origin,
        )

    def _ranking(self, hits: Sequence[ForeignHit]) -> Ranking:
        """Convert a list to passages of the corpus."""
        matched = self._corpus.matcher.match(hits)
        self._matches.append(matched)
        ranking = ranking_of(matched, hits)
        self._passages.update((hit.passage.id, hit.passage) for hit in ranking)
        return ranking


class _Steps:
    """The spans of one route, numbered in the order of their start, and its lists. A list composed of lists
    below it gets a span of its own after them: no step receives a later result.
    """

    def __init__(
        self, spans: Sequence[ForeignSpan], zero: int, ranking: Callable[[Sequence[ForeignHit]], Ranking]
    ) -> None:
        self.spans: list[Span] = []
        self._zero, self._rank = zero, ranking
        self._numbers = {span.id: number for number, span in enumerate(spans, 1)}
        self._rankings: dict[int, Ranking] = {}  # by the number of the span that gave the list
        self._taken: set[int] = set()  # spans whose list another step consumed
        above: set[str] = set()  # spans with a list somewhere below them
        for span in reversed(spans):  # a step is behind the one above it
            if span.hits or span.id in above:
                above.add(span.parent)
        late = [span for span in spans if span.hits is not None and span.id in above]
        for span in spans:
            self._add(span, None if span in late else span.hits)
        for span in late:
            self._add_composed(span)

    @property
    def final(self) -> tuple[Ranking, Link] | None:
        """Return the last list that no step consumed, with its origin."""
        free = [span for span in self._lists() if span.id not in self._taken and span.hits]
        if not free:
            return None
        last = max(free, key=lambda span: (span.start_ms + span.ms, span.id))
        ranking = self._rankings[last.id]
        return ranking, Link("hits", last.id, len(ranking))

    def returned(self, root: ForeignSpan, asked: str) -> tuple[Ranking, Link]:
        """Return the list that the root reports, linked to the last list that contains all of it."""
        ranking = self._rank(root.hits or ())
        ids = [hit.passage.id for hit in ranking]
        for span in reversed(self.spans):
            if span.hits is not None and [id for id, _ in span.hits][: len(ids)] == ids:
                return ranking, Link("hits", span.id, len(ids))
        links = self._links_of(ranking, [one for one in self._lists() if one.id not in self._taken])
        output: Output = NOTHING if links else Search((asked,))
        last = self._append_result(root, None, ranking, output, links, {})
        return ranking, Link("hits", last, len(ids))

    def _lists(self) -> list[Span]:
        return [span for span in self.spans if span.id in self._rankings]

    def _add(self, span: ForeignSpan, hits: tuple[ForeignHit, ...] | None) -> None:
        ranking = None if hits is None else self._rank(hits)
        links = self._linked(span, ranking) if ranking is not None and span.kind != "RETRIEVER" else ()
        text = span.text("gen_ai.retrieval.query.text", "reranker.query", *INPUT)
        top = span.number("reranker.top_k", "gen_ai.retrieval.top_k")
        used = span.number(*PROMPT), span.number(*COMPLETION)
        made = Span(
            self._numbers[span.id],
            self._numbers.get(span.parent),
            span.name,
            span.kind,
            (span.start - self._zero) / 1e6,
            (span.end - span.start) / 1e6,
            {**({"text": text} if text else {}), **({"k": top} if top else {})},
            self._output(span, ranking, links),
            _scored(ranking),
            links,
            attributes={"time": "from the trace", **_unscored(hits)},
            tokens=Tokens(*used) if any(used) else None,
            calls=int(span.kind == "LLM"),
            error=span.error,
        )
        self._keep(made, ranking)

    def _add_composed(self, span: ForeignSpan) -> None:
        """Add a span for the list that a step composed of the searches below it."""
        ranking, number = self._rank(span.hits or ()), self._numbers[span.id]
        parents = {one.id: one.parent for one in self.spans}

        def below(at: int | None) -> bool:
            while at is not None and at != number:
                at = parents.get(at)
            return at == number

        inside = [one for one in self._lists() if one.id not in self._taken and below(one.parent)]
        links = self._links_of(ranking, inside)
        output: Output = Pass() if links else Search((span.text(*INPUT),))
        attributes = {"time": "part of the step above it", **_unscored(span.hits)}
        self._append_result(span, number, ranking, output, links, attributes)

    def _append_result(
        self,
        of: ForeignSpan,
        parent: int | None,
        ranking: Ranking,
        output: Output,
        links: tuple[Link, ...],
        attributes: Mapping[str, str],
    ) -> int:
        """Append a span at the end of another one for the list that it gave; return its number."""
        number, at, name = len(self.spans) + 1, max(0.0, (of.end - self._zero) / 1e6), f"result of {of.name}"
        scored = _scored(ranking)
        made = Span(number, parent, name, "CHAIN", at, 0.0, {}, output, scored, links, attributes=attributes)
        self._keep(made, ranking)
        return number

    def _keep(self, made: Span, ranking: Ranking | None) -> None:
        self.spans.append(made)
        if ranking is not None:
            self._rankings[made.id] = ranking
            self._taken |= {link.span for link in made.links if link.span is not None}

    def _links_of(self, ranking: Ranking, candidates: Sequence[Span]) -> tuple[Link, ...]:
        """Link a list to the lists its passages come from, plus one of unknown origin for the rest."""
        ids = {hit.passage.id for hit in ranking}
        given = [(span.id, [id for id, _ in span.hits or ()]) for span in candidates]
        given = [(span, listed) for span, listed in given if ids & set(listed)]
        return links_to(ids, given) if given else ()

    def _linked(self, span: ForeignSpan, ranking: Ranking) -> tuple[Link, ...]:
        """Link a step to its input lists: those with the passages it reports as input, else with its
        output.
        """
        given = self._rank(span.given) if span.given else ranking
        end = (span.end - self._zero) / 1e6 + 1
        ended = [one for one in self._lists() if one.start_ms + one.ms <= end]
        free = [one for one in ended if one.id not in self._taken]
        return self._links_of(given, free) or self._links_of(given, ended[-1:])

    def _output(self, span: ForeignSpan, ranking: Ranking | None, links: tuple[Link, ...]) -> Output:
        model, asked = span.text(*MODEL), span.text(*INPUT)
        if ranking is not None and span.kind == "RERANKER":
            return Rerank(model or span.name, tuple(self._order(ranking, links)))
        if ranking is not None and not links:
            text = span.text("gen_ai.retrieval.query.text") or asked
            return Search((_plain(text, ASKED) or text,) if text else (), model)
        if span.kind == "LLM":
            return Reply(_plain(_message(span, "output"), ANSWERED) or span.text(*OUTPUT), model)
        if span.kind == "EMBEDDING":
            named = sorted(name for name in span.attributes if name.endswith(".embedding.text"))
            texts = [text for name in named if isinstance(text := span.attributes[name], str)]
            return Embedding(tuple(texts) or ((asked,) if asked else ()))
        return NOTHING if ranking is not None or not span.text(*OUTPUT) else Pass(span.text(*OUTPUT))

    def _order(self, ranking: Ranking, links: tuple[Link, ...]) -> Iterator[Reranked]:
        before: dict[str, tuple[int, float]] = {}
        spans = {span.id: span for span in self.spans}
        for link in links:
            given = spans[link.span].hits or () if link.span is not None else ()
            for rank, (id, score) in enumerate(given, 1):
                before.setdefault(id, (rank, score))
        for hit in ranking:
            if hit.passage.id in before:
                yield Reranked(hit.passage.id, *before[hit.passage.id], hit.score)


def _scored(ranking: Ranking | None) -> tuple[tuple[str, float], ...] | None:
    return None if ranking is None else tuple((hit.passage.id, hit.score) for hit in ranking)


def _unscored(hits: Sequence[ForeignHit] | None) -> dict[str, str]:
    return {"scores": UNSCORED} if any(hit.score is None for hit in hits or ()) else {}


def _answer(root: ForeignSpan) -> str | None:
    if root.kind in ("RETRIEVER", "RERANKER", "EMBEDDING"):
        return None
    return _plain(root.text(*OUTPUT), ANSWERED) or _plain(_message(root, "output"), ANSWERED) or None


def _metadata(span: ForeignSpan) -> dict[str, Any]:
    """Return a span's metadata, from JSON or from separate attributes, as Phoenix writes them."""
    prefix = "metadata."
    own = {key.removeprefix(prefix): v for key, v in span.attributes.items() if key.startswith(prefix)}
    found = opened(span.text("metadata"))
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
    return _found(opened(text), names, DEPTH) or ""


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
