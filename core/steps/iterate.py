"""Steps of routes that search again by what they found, and the reasons for which they stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.domain.outputs import Fusion
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.linked_names import LinkedName, Linker
from core.steps.retrieve import Retrieve
from core.steps.step import step

ANSWER = 4  # model calls that an answer may take: whether there is one, the answer, each asked twice
MAX_RECORDED_NAMES = 5


@dataclass(frozen=True, slots=True)
class LoopDecision(Decided):
    """The decision whether a loop continues, or the limit that ends it."""

    decision: Literal["go on", "steps used up", "nothing new"]
    why: str


@dataclass(frozen=True, slots=True)
class MissingName(Decided):
    """The decision whether a mentioned name has to be looked up."""

    decision: Literal["look up", "nothing missing"]
    score: float
    threshold: float
    # the likeliest name and the question's words missing from the passage that mentions it; "" without a name
    query: str
    names: tuple[LinkedName, ...]  # the likeliest names, best first

    SCORE = "score"
    TEXT = "query"
    FIRES = (("look up", "nothing missing"),)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one search."""

    passages: int  # number of hits
    new: int  # number of new passages among the first hits
    nearest: float | None  # best cosine of the first hits with the question


def collect(collected: Ranking, found: Ranking, each: int, keep: int) -> Ranking:
    """Append the new passages among the first `each` of `found` to `collected`, up to `keep` in all.

    The order of discovery is kept, so that a prompt starts like the one before it.
    """
    known = {hit.passage.id for hit in collected}
    return (*collected, *(hit for hit in found[:each] if hit.passage.id not in known))[:keep]


class Iterate(Retrieve):
    """Searching again with names that the passages mention."""

    def lacking(self, calls: int) -> str:
        """Why `calls` further model calls, and those that an answer may take, are too many; "" if they are
        not. Tokens are judged by the mean of the calls so far.
        """
        context = self.context
        needed = calls + (ANSWER if context.answering is not None and context.answering.by == "model" else 0)
        left = context.max_calls - context.calls
        if left < needed:
            return f"{left} of {context.max_calls} model calls are left, and {needed} may be needed"
        tokens = context.max_tokens - context.tokens
        mean = context.tokens / context.calls if context.calls else 0.0
        if tokens <= mean * needed:
            return f"{tokens} of {context.max_tokens} model tokens are left, too few for {needed} calls"
        return ""

    @step("CHAIN", "collect what is new", returns=Ranking)
    def collect(self, collected: Ranking, found: Ranking, each: int, keep: int) -> Ranking:
        """Append new passages as `collect` does; the span records them."""
        kept = collect(collected, found, each, keep)
        self.span.output = Fusion("collect", new=tuple(hit.passage.id for hit in kept[len(collected) :]))
        return kept

    @step("CHAIN", "count what was found", returns=Seen)
    def seen(self, question: str, hits: Ranking, collected: Ranking, each: int) -> Seen:
        """Count the `hits` and the new ones among the first `each`, and compute the best cosine with the
        question.
        """
        known = {hit.passage.id for hit in collected}
        new = sum(hit.passage.id not in known for hit in hits[:each])
        if not hits:
            return Seen(0, 0, None)
        cosines = self.vectors_of(hits[:each]) @ self.embed(question)
        return Seen(len(hits), new, round(float(cosines.max()), 4))

    @step("CHAIN", "go on or stop", returns=LoopDecision)
    def another_round(self, done: int, steps: int, new: int) -> LoopDecision:
        """Decide whether another search follows after `done` further ones, the last of which added `new`
        passages.
        """
        if done >= steps:
            return LoopDecision("steps used up", f"{done} of {steps} further searches are done")
        if not new:
            return LoopDecision("nothing new", "the last search added no passage to those collected")
        return LoopDecision("go on", f"{new} new passages, {done} of {steps} further searches are done")

    @step("CHAIN", "find a name to look up", returns=MissingName)
    def find_name(
        self, question: str, read: Ranking, threshold: float, searched: tuple[str, ...]
    ) -> MissingName:
        """Return the likeliest name that `read` or the question mentions and that none of `read` is about;
        see `core.steps.linked_names`. It is looked up if its score is at least `threshold` and it was not
        searched before.
        """
        passages = [hit.passage for hit in read]
        linked = Linker(question, self.context.corpus, self.context.where).linked(passages, passages)
        names = tuple(name for name in linked if name.query not in searched)[:MAX_RECORDED_NAMES]
        if not names:
            why = "no passage of the corpus is about a name that was mentioned and not yet found"
            return MissingName("nothing missing", why, 0.0, threshold, "", ())
        best = names[0]
        enough = best.score >= threshold
        why = f"{best.name!r} scores {best.score:.2f}, {'at least' if enough else 'below'} {threshold:g}"
        about = (why, best.score, threshold, best.query, names)
        return MissingName("look up" if enough else "nothing missing", *about)
