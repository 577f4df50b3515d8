"""Results of format 1, whose steps did not record what they were given, as they are written today.

What steps record today was inferred then: from lengths of lists, their passages, equal values. That lives on
here and nowhere else; what cannot be inferred is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.domain.outputs import Excerpts, Output, Rewrite, Written
from core.domain.types import AnswerBasis, Link, RouteResult, Scored, Span
from core.store.upgrade.earlier import Around, Earlier, How, ids
from core.store.upgrade.links import Links
from core.store.upgrade.outputs import output_of
from core.store.upgrade.parameters import set_by
from core.store.upgrade.read import rows

__all__ = ["Earlier", "upgraded"]

SHOWN = 5  # passages that an answer was written from unless a route said otherwise
ANSWERED = (
    "answer from the whole corpus",
    "answer from what the model knows",
    "answer without passages",
    "answer without searching",
    "choose the best path",
    "choose the best segment",
    "copy the best sentences",
    "keep a draft",
    "read the passages together",
    "reply without a search",
    "say the result",
    "say what is missing",
    "write answer",
)
# Inputs that a step added itself, and that stand in its output now.
MOVED = {
    "abstained",
    "alike",
    "attention",
    "chosen",
    "cosines",
    "dropped",
    "evidence",
    "expansion",
    "features",
    "floor",
    "found by",
    "found in",
    "match",
    "matched",
    "near",
    "new",
    "only",
    "order",
    "ranks",
    "reranker",
    "saved",
    "sentences without citation",
    "shares",
    "shown",
    "spread",
    "terms",
    "tokens after",
    "tokens before",
    "words",
    "wrong citations",
}
MOVED_OF = {
    "does the question stand alone": {"best", "note"},
    "rewrite as a standalone question": {"text"},
    "score by matching tokens": {"model", "scored"},
    "search all token vectors": {"model"},
    "search learned term weights": {"model"},
}
RENAMED = {("does the question stand alone", "enough"): "threshold"}
ODDS = ("probabilities", "sampled word")  # how a model told a class, in place of who told it


def upgraded(
    earlier: Sequence[tuple[RouteResult, tuple[Earlier, ...]]], question: str
) -> Iterator[RouteResult]:
    """The results of a run, each given without its spans, and these; `question` is the run's."""
    others = {result.route: spans for result, spans in earlier}
    for result, spans in earlier:
        yield _Route(result, spans, others).upgraded(question)


class _Route:
    """One result on its way."""

    def __init__(
        self,
        result: RouteResult,
        spans: tuple[Earlier, ...],
        others: Mapping[str, tuple[Earlier, ...]],
    ) -> None:
        self._result, self._others = result, others
        self._earlier = tuple(map(_outcome, spans))
        self._by_id = {span.id: span for span in self._earlier}

    def upgraded(self, question: str) -> RouteResult:
        origin = self._origin()
        adding = Links(origin, self._elsewhere)
        links = {span.id: adding.add(span) for span in self._earlier}
        around = Around(self._by_id, links, self._result, self._below)
        sampled = {span.id for span in self._earlier if span.name == "search with each sample"}
        spans = tuple(
            self._span(span, links[span.id], output_of(span, around))
            for span in self._earlier
            if span.parent not in sampled or not span.ranks  # their lists stand in its output
        )
        wrote = self._wrote(spans)
        return replace(
            self._result,
            spans=spans,
            origin=origin,
            basis=self._basis(spans, question, wrote),
            answer_span=None if wrote is None else wrote.id,
        )

    def _span(self, span: Earlier, links: tuple[Link, ...], output: Output) -> Span:
        linked = {link.arg.partition("[")[0] for link in links}
        args, attributes = dict[str, Any](), dict[str, Any]()
        if span.asked_model:
            args = {
                name: span.inputs[name] for name in ("text", "prompt", "max_tokens") if name in span.inputs
            }
            args["attempt"] = 2 if str(args.get("prompt", "")).endswith("/firmer") else 1
        else:
            parameters, moved = span.parameters, MOVED_OF.get(span.name, ())
            for name, value in span.inputs.items():
                if (how := parameters.get(name)) is not None:
                    if how == "value" or _shown(how, value, name in linked):
                        args[RENAMED.get((span.name, name), name)] = value
                elif not (name in MOVED or name in moved or (name == "lists" and "hits" in linked)):
                    attributes[name] = value
        if span.name == "classify the question" and args.get("by") in ODDS:
            attributes["by"], args["by"] = args["by"], "llm"
        if span.name == "write answer" and args.get("evidence") is None:
            args |= self._threshold(span)
        unknown = [link.arg for link in links if link.span is None and link.size]
        if unknown:
            attributes["not stored"] = f"which step made: {', '.join(unknown)}"
        return Span(
            span.id,
            span.parent,
            span.name,
            span.kind,
            span.start_ms,
            span.ms,
            args,
            output,
            span.hits if span.ranks else None,
            links,
            set_by(self._result.route, self._result.parameters, span.name, args),
            attributes,
            span.tokens,
            span.cost,
            span.calls,
            span.shared_with,
            span.cached,
            span.error,
        )

    def _threshold(self, span: Earlier) -> dict[str, Any]:
        """The evidence that an answer had to have, told by the step that looked for it."""
        looked = [one for one in self._below(span) if "threshold" in one.inputs]
        return {"evidence": looked[0].inputs["threshold"]} if looked else {}

    def _below(self, span: Earlier) -> list[Earlier]:
        """The steps right below a step; of one that was taken over those of the route that did it."""
        own = [one for one in self._earlier if one.parent == span.id]
        if own or not span.shared_with:
            return own
        owner, _, number = span.shared_with.partition("#")
        return [one for one in self._others.get(owner, ()) if str(one.parent) == number]

    def _elsewhere(self, span: Earlier) -> tuple[Scored | None, ...]:
        """The rankings that a step was given where it was done, by the route that did it."""
        owner, _, number = (span.shared_with or "").partition("#")
        theirs = {str(one.id): one for one in self._others.get(owner, ())}
        done = theirs.get(number)
        named = rows(done.inputs.get("lists")) if done is not None else []
        return tuple(theirs[str(one)].hits if str(one) in theirs else None for one in named)

    def _origin(self) -> Link | None:
        """The latest list that was returned, or of which a part was."""
        final = tuple((hit.passage.id, hit.score) for hit in self._result.hits)
        if not final:
            return None
        size, named = len(final), ids(final)
        lists = [(span.id, span.hits) for span in reversed(self._earlier) if span.ranks and span.hits]
        parts = [
            (id, hits[start : start + size], start)
            for id, hits in lists
            if len(hits) >= size
            for start in {0: None, len(hits) - size: None}
        ]
        same = [(id, start) for id, part, start in parts if part == final]
        for id, start in same or [(id, start) for id, part, start in parts if ids(part) == named]:
            return Link("hits", id, size, start)
        return Link("hits", None, size)

    def _wrote(self, spans: Sequence[Span]) -> Span | None:
        """The step that wrote the answer."""
        answer = self._result.answer
        if answer is None:
            return None
        made = [span for span in spans if span.name in ANSWERED and span.parent is None and not span.error]
        made = [span for span in made if not isinstance(span.output, Written) or span.output.text == answer]
        return made[-1] if made else None

    def _basis(self, spans: Sequence[Span], question: str, wrote: Span | None) -> AnswerBasis | None:
        """What an answer is to be written from; None where the route wrote one by itself."""
        result = self._result
        if result.status != "ok":
            return None
        if wrote is not None and "excerpts" in wrote.args:
            excerpts = wrote.args["excerpts"]
            if not isinstance(excerpts, Mapping):
                return None
            link = next((one for one in wrote.links if one.arg == "hits"), None)
            size = link.size if link is not None else 0
            shown = size if size < len(result.hits) else max(size, SHOWN)
            return AnswerBasis(str(wrote.args.get("text", question)), shown, _texts(excerpts))
        if result.answer is not None:
            return None
        top = [span for span in spans if span.parent is None]
        searched = next((span.id for span in top if span.hits is not None), None)
        taken = [
            span.output.texts[0]
            for span in top
            if isinstance(span.output, Rewrite)
            and span.output.role == "question"
            and span.output.changed
            and span.output.texts
            and (searched is None or span.id < searched)
        ]
        made = [one.output.excerpts for one in top if isinstance(one.output, Excerpts)]
        left = made[-1] if made else {}
        return AnswerBasis(taken[-1] if taken else question, len(left) or SHOWN, _texts(left))


def _shown(how: How, value: Any, linked: bool) -> bool:
    """Whether an argument that may be linked is recorded as it was: not what is there in words alone."""
    return not linked and (how == "vector" or (how == "made" and isinstance(value, list | Mapping)))


def _outcome(span: Earlier) -> Earlier:
    """An empty result of any kind was stored as an empty ranking."""
    empty = span.hits == () and span.output is None and span.error is None and not span.ranks
    return replace(span, output=[]) if empty else span


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    return {str(id): str(text) for id, text in given.items()}
