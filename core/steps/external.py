"""The step that asks a pipeline which is not ours, and records as much of its inside as it tells."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from core.backends.admission import aside
from core.corpus.passage_matching import Matched, describe, own
from core.domain import outputs
from core.domain.errors import Cancelled, PipelineTimedOut
from core.domain.external import KINDS, ForeignHit, PipelineReply, PipelineStage
from core.domain.types import Answer, Hit, Link, Origin, Query, Ranking, Tokens, TracedTuple
from core.steps.base import ExternalReply
from core.steps.generate import Generate

OUTSIDE = "measured from outside"
FROM_FILE = "not measured: the reply is from a file"
REPORTED = "reported by the pipeline"


@dataclass(frozen=True, slots=True)
class _Listed:
    """A list of the pipeline's as passages, and the span it stands on."""

    span: int
    hits: Ranking

    @property
    def ids(self) -> list[str]:
        return [hit.passage.id for hit in self.hits]


class AskExternal(Generate):
    """Asks pipelines that are not ours."""

    def external(self, name: str, query: Query, k: int) -> Answer:
        """Run an external pipeline. Return its ranking as passages of the corpus, with its answer, or with
        ours if an answer was requested and the pipeline gave none.

        Spans: the call with its duration measured here; under it each stage the pipeline reported, with its
        reported duration; then the rewritten questions and the final list. Passages missing from the corpus
        keep their text under ids of their own. Results are never shared between routes, as a pipeline may
        answer differently each time.

        Raises Unavailable, PipelineFailed, PipelineTimedOut, and BadInput if the reply is malformed.
        """
        trace = self.context.trace
        given, stages, final = self._call(name, query, k)
        reply = given.reply
        if reply.rewritten:
            with trace.span(f"rewritten by {name}", "LLM") as span:
                one = len(reply.rewritten) == 1
                span.output = outputs.Rewrite(query.text, reply.rewritten, "question" if one else "variants")
                span.attributes["time"] = "part of the call"
        ranking = self._final(name, query, reply, stages, final)
        if reply.answer is None:
            return self.answer(query.text, ranking)
        return self._their_answer(name, reply, ranking, final)

    def _call(self, name: str, query: Query, k: int) -> tuple[ExternalReply, list[_Listed | None], Matched]:
        """Call the pipeline. Return the reply, the ranking of each stage, and the final list matched to the
        corpus.
        """
        context, trace = self.context, self.context.trace
        with aside():
            pipeline = context.external(name)
        args = {"query": query.text, "k": k, "history": len(query.history)}
        with trace.span(f"call {name}", "RETRIEVER", args) as span:
            span.attributes["time"] = FROM_FILE if pipeline.door == "file" else OUTSIDE
            if context.where:
                span.attributes["filters"] = "not passed on: they do not reach a pipeline of your own"
            try:
                with context.at_most(pipeline.timeout_s) as timeout:
                    given = pipeline.ask(query, k, timeout, context.cancel)
            except PipelineTimedOut:
                context.left()  # the route's own time may be what was up
                raise
            except Cancelled:
                trace.cut_short()
                raise
            reply = given.reply
            if given.made:
                span.cached = "cache"
            trace.stand_at(span.start_ms + given.ms)  # not the wait for another call, nor for its start
            ended, began = trace.now(), time.perf_counter()
            with aside():  # the first one reads all words of the corpus
                matched = [
                    None if stage.hits is None else context.corpus.matcher.match(stage.hits)
                    for stage in reply.stages
                ]
                final = context.corpus.matcher.match(reply.hits)
            span.output = _output(name, pipeline.door, given, final, (time.perf_counter() - began) * 1000)
            if reply.usage is not None:
                span.tokens = Tokens(reply.usage.prompt, reply.usage.completion)
                span.calls = reply.usage.calls
            told = f"{REPORTED}: {', '.join(stage.name for stage in reply.stages)}"
            none = "none reported: what happened inside cannot be looked at"
            span.attributes["stages"] = told if reply.stages else none
            trace.stand_at(span.start_ms)
            stages = self._stages(reply.stages, matched)
            trace.stand_at(ended)  # what was done here with the reply is no time of the pipeline
        return given, stages, final

    def _stages(
        self, stages: Sequence[PipelineStage], matched: Sequence[Matched | None]
    ) -> list[_Listed | None]:
        """Record a span for each stage in sequence, with the duration the pipeline reported."""
        trace = self.context.trace
        made: list[_Listed | None] = []
        for stage, found in zip(stages, matched, strict=True):
            ranking = () if found is None or stage.hits is None else ranking_of(found, stage.hits)
            given = [one for at in stage.sources if (one := made[at]) is not None]
            links = () if found is None or _searches(stage) else _links(ranking, given)
            with trace.span(stage.name, KINDS[stage.kind], {"kind": stage.kind}, links) as span:
                span.attributes["time"] = REPORTED if stage.ms is not None else "not reported"
                span.original_ms = stage.ms or 0.0
                if found is None:
                    made.append(None)
                    continue
                span.output = _stage_output(stage, ranking, given)
                span.hits = tuple((hit.passage.id, hit.score) for hit in ranking)
                trace.keep(ranking)
                made.append(_Listed(span.id, ranking))
        return made

    def _final(
        self, name: str, query: Query, reply: PipelineReply, stages: Sequence[_Listed | None], final: Matched
    ) -> Ranking:
        """Record the pipeline's final list, linked to the stages' lists that no other stage consumed."""
        ranking = ranking_of(final, reply.hits)
        taken = {at for stage in reply.stages for at in stage.sources}
        untaken = [at for at, one in enumerate(stages) if one is not None and at not in taken]
        given = [one for at in untaken if (one := stages[at]) is not None]
        links = _links(ranking, given) if given else ()
        with self.context.trace.span(f"result of {name}", "RETRIEVER", {}, links) as span:
            span.attributes["time"] = "part of the call"
            if not reply.scored:
                span.attributes["scores"] = "none reported: 1/rank stands in their place"
            if not given:
                span.output = outputs.Search((query.text,))
            elif len(given) > 1:
                span.output = outputs.Fusion("reported", tuple(reply.stages[at].name for at in untaken))
            span.hits = tuple((hit.passage.id, hit.score) for hit in ranking)
            self.context.trace.keep(ranking)
        return TracedTuple(ranking, Origin(span.id, 0, len(ranking)))

    def _their_answer(self, name: str, reply: PipelineReply, ranking: Ranking, final: Matched) -> Answer:
        """Record the pipeline's answer, with citations resolved to passages if they name a hit."""
        known: dict[str, str] = {}
        for placed in final.placed:
            hit = reply.hits[placed.at]
            known.setdefault(placed.passage.id, placed.passage.id)
            for known_as in (hit.id, hit.doc_id):
                if known_as is not None:
                    known.setdefault(known_as, placed.passage.id)
        cited = tuple(dict.fromkeys(known[one] for one in reply.citations if one in known))
        with self.context.trace.span(f"answer of {name}", "LLM") as span:
            span.attributes["time"] = "part of the call"
            if unknown := [one for one in reply.citations if one not in known]:
                span.attributes["citations of no hit"] = unknown[:20]
            span.output = outputs.Written(reply.answer or "", cited)
        answer = Answer(ranking, reply.answer, cited, source=span.output)
        self.context.trace.remember(span.output, span.id)
        self.context.found = replace(answer, source=None)
        return answer


def ranking_of(matched: Matched, hits: Sequence[ForeignHit]) -> Ranking:
    """Convert a matched list to hits; if any score is missing, all hits score 1 / rank."""
    scored = all(hit.score is not None for hit in hits)
    return tuple(
        Hit(one.passage, (hits[one.at].score or 0.0) if scored else 1.0 / rank)
        for rank, one in enumerate(matched.placed, 1)
    )


def links_to(ids: Iterable[str], lists: Sequence[tuple[int, Collection[str]]]) -> tuple[Link, ...]:
    """Link a list of passages to its source lists, each the id of a span and its passages, and add a link of
    unknown origin if it contains passages of none of them.
    """
    args = ["hits"] if len(lists) == 1 else [f"lists[{at}]" for at in range(len(lists))]
    links = [Link(arg, span, len(own)) for arg, (span, own) in zip(args, lists, strict=True)]
    if others := len(set(ids).difference(*(own for _, own in lists))):
        links.append(Link(f"lists[{len(lists)}]", None, others))
    return tuple(links)


def _links(ranking: Ranking, given: Sequence[_Listed]) -> tuple[Link, ...]:
    return links_to((hit.passage.id for hit in ranking), [(one.span, one.ids) for one in given])


def _searches(stage: PipelineStage) -> bool:
    return stage.kind == "retrieve" and not stage.sources


def _stage_output(stage: PipelineStage, ranking: Ranking, given: Sequence[_Listed]) -> outputs.Output:
    """Return a stage's output. A search's text is omitted: the pipeline may have rewritten the question."""
    if _searches(stage):
        return outputs.Search()
    if stage.kind == "fuse":
        return outputs.Fusion("reported")
    if stage.kind != "rerank":
        return outputs.Pass()
    before: dict[str, tuple[int, Hit]] = {}
    for one in given:
        for rank, hit in enumerate(one.hits, 1):
            before.setdefault(hit.passage.id, (rank, hit))
    order = (
        outputs.Reranked(
            hit.passage.id, before[hit.passage.id][0], before[hit.passage.id][1].score, hit.score
        )
        for hit in ranking
        if hit.passage.id in before
    )
    return outputs.Rerank(stage.name, tuple(order))


def _output(
    name: str, door: str, given: ExternalReply, final: Matched, matching_ms: float
) -> outputs.External:
    reply, rules = given.reply, Counter[str](rule for rule in final.rules if rule is not None)
    unmatched = tuple(one.passage.id for one in final.placed if one.rule is None)
    stages = tuple(stage.name for stage in reply.stages)
    matched = (len(final.rules), sum(rules.values()), dict(rules), unmatched, describe([final]))
    told = (stages, reply.scored, given.inside_ms, given.made, reply.ignored)
    return outputs.External(
        name, door, *matched, round(matching_ms, 3), *told, tuple(_returned(reply.hits, final))
    )


def _returned(hits: Sequence[ForeignHit], final: Matched) -> Iterator[outputs.ReturnedHit]:
    """Yield each hit with its place."""
    scored = all(hit.score is not None for hit in hits)
    for rank, (hit, found) in enumerate(zip(hits, final.standing, strict=True), 1):
        score = (hit.score or 0.0) if scored else 1.0 / rank
        start, end = found.span or (None, None)
        text = "" if found.span else hit.text
        yield outputs.ReturnedHit(own(hit).id, score, found.doc, start, end, found.ids, text)
