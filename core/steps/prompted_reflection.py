"""Steps that ask an ordinary model, in words, what Self-RAG's reflection tokens tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeGuard

from core.backends.prompting.citations import NOT_ANSWERED, Draft, abstains, unmarked
from core.backends.prompting.prompts import LOOK_UP, RELEVANT, SEGMENT, SUPPORTED, UNAIDED, USEFUL, Prompt
from core.backends.prompting.replies import DIGITS, By, TokenProbabilities, odds
from core.backends.prompting.untrusted import between, in_line
from core.domain.errors import BudgetSpent, ModelFailed
from core.domain.outputs import Rerank, Reranked, Segment, SegmentTree, State
from core.domain.types import Hit, Passage, Ranking
from core.steps.base import StepBase
from core.steps.beam import score_of, support_of
from core.steps.decisions import Decided
from core.steps.step import step

SUPPORT = ("fully", "partially", "no")


@dataclass(frozen=True, slots=True)
class LookUp(Decided):
    """The decision whether to retrieve for a question."""

    decision: Literal["retrieve", "no retrieval"]
    probability: float | None  # P(Yes); None if the reply was neither Yes nor No
    threshold: float
    by: By | None

    SCORE = "probability"
    FIRES = (("no retrieval", "retrieve"),)


@dataclass(frozen=True, slots=True)
class JudgedSegment:
    """A segment written from one passage, with what the model says of both, as `core.steps.beam` reads it.

    `relevance` is P(yes), `support` the odds of its three words, `utility` the expected digit from 1 to 5 put
    on -1 to 1. `why` says what is missing of a segment that could not be judged in full.
    """

    passage: str
    text: str
    relevance: float | None = None
    support: Mapping[str, float] | None = None
    utility: float | None = None
    by: tuple[By, ...] = ()
    why: str = ""

    def as_segment(self) -> Segment:
        """Return the segment as stored on the span, the first and last of its path."""
        support = None if self.support is None else dict(self.support)
        judged = (self.relevance, support, self.utility, 0.0)
        return Segment(self.passage, self.text, *judged, ended="end", why=self.why, by=self.by)


class PromptedReflection(StepBase):
    """The questions that stand for reflection tokens."""

    @step("EVALUATOR", "decide whether to look it up", returns=LookUp)
    def worth_searching(self, text: str, threshold: float) -> LookUp:
        """Retrieve where P(Yes) is at least `threshold`, and where the model says neither Yes nor No."""
        found = self._yes(LOOK_UP, threshold, question=text)
        why = found.why if found.by else f"{found.why}: it is looked up"
        return LookUp(
            "no retrieval" if found.enough is False else "retrieve", why, found.share, threshold, found.by
        )

    @step("LLM", "answer from what the model knows", returns=Draft)
    def unaided(self, text: str) -> Draft:
        """Answer without passages; nothing is cited."""
        reply = self._ask(UNAIDED, max_tokens=100, stream=True, question=text)
        return Draft(unmarked(reply.text), unaided=True)

    def judged_segments(
        self, text: str, hits: Ranking, relevant_from: float
    ) -> tuple[JudgedSegment | None, ...]:
        """`judged_segment` for each hit; None from where the budget was spent. A model on this machine takes
        one passage after another, so that it reads each once.
        """

        def write(hit: Hit) -> JudgedSegment | None:
            return self.afford(self.judged_segment, text, hit.passage, relevant_from)

        written = tuple(map(write, hits)) if self.context.llm.local else self.each(write, hits)
        if written and all(one is None for one in written):
            raise BudgetSpent("the route's budget was spent before any segment was written and judged")
        return written

    @step("CHAIN", "answer from one passage and judge it", returns=JudgedSegment)
    def judged_segment(self, text: str, passage: Passage, relevant_from: float) -> JudgedSegment:
        """Relevance of `passage`, a sentence from it, and how far that is supported and useful.

        From a passage below P(Yes) `relevant_from` nothing is written. A segment that says that the passage
        does not answer is not judged; nor is one with a reply that cannot be used, which is neither pass nor
        fail.
        """
        shown, segment = between(1, passage.title, passage.text), ""

        def judge(what: str, prompt: Prompt, words: tuple[str, ...]) -> TokenProbabilities:
            reply = self._ask(
                prompt,
                max_tokens=4,
                top_logprobs=10,
                reuse_prefix=True,
                passages=shown,
                question=text,
                segment=in_line(segment),
            )
            found = odds(reply, words)
            if found is None:
                raise ModelFailed(f"{what}: none of {', '.join(words)} but {reply.text[:40]!r}")
            return found

        try:
            relevance = judge("relevance", RELEVANT, ("yes", "no"))
            if (share := relevance.of["yes"]) < relevant_from:
                why = f"P(Yes) {share:.2f} that it states the answer is below {relevant_from:.2f}"
                return JudgedSegment(passage.id, NOT_ANSWERED, share, by=(relevance.by,), why=why)
            segment = self._ask(
                SEGMENT, max_tokens=80, reuse_prefix=True, passages=shown, question=text
            ).text.strip()
            if abstains(segment) or not unmarked(segment):
                why = "it says that the passage does not answer"
                return JudgedSegment(passage.id, segment, relevance.of["yes"], by=(relevance.by,), why=why)
            support = judge("support", SUPPORTED, SUPPORT)
            utility = judge("utility", USEFUL, DIGITS)
        except ModelFailed as error:
            return JudgedSegment(passage.id, segment, why=str(error))
        return JudgedSegment(
            passage.id,
            unmarked(segment),
            relevance.of["yes"],
            dict(support.of),
            (utility.mean() - 3) / 2,
            (relevance.by, support.by, utility.by),
        )

    @step("RERANKER", "order by the segments written", returns=Ranking)
    def by_judged(
        self, hits: Ranking, segments: tuple[JudgedSegment | None, ...], weights: Mapping[str, float]
    ) -> Ranking:
        """`hits` by the score of the segment from each, what was not judged last; the score is 1 / rank."""
        judged = [one.as_segment() for one in segments if judged_in_full(one)]
        scores = {one.passage: score_of(one, weights) for one in judged}
        order = sorted(enumerate(hits, 1), key=lambda one: -scores.get(one[1].passage.id, float("-inf")))
        moved = []
        for at, hit in order:
            score = scores.get(hit.passage.id)
            state: State = "not scored" if score is None else "scored"
            moved.append(Reranked(hit.passage.id, at, hit.score, score, state=state))
        self.span.output = Rerank(self.context.llm.model, tuple(moved))
        return tuple(Hit(hit.passage, 1 / rank) for rank, (_, hit) in enumerate(order, 1))

    @step("EVALUATOR", "choose the best segment", returns=Draft)
    def choose_segment(
        self, segments: tuple[JudgedSegment | None, ...], weights: Mapping[str, float], supported_from: float
    ) -> Draft:
        """Choose the segment with the highest weighted sum of its judgements. It is cited as [1], as its
        passage comes first.

        The span keeps all segments (see `core.steps.beam`). Those without all three judgements, or supported
        by less than `supported_from`, are listed separately and never chosen. If none is left, the answer
        abstains. Raises ModelFailed if all failed.
        """
        written = [one for one in segments if judged_in_full(one)]
        full = [one for one in written if (support_of(one.support) or 0.0) >= supported_from]
        rest = [one for one in segments if one is not None and not judged_in_full(one)]
        less = f"its passage supports it by less than {supported_from:g}"
        rest += [replace(one, why=less) for one in written if one not in full]
        failed = [one for one in rest if one not in written and (not one.text or not abstains(one.text))]
        if failed and not written and not any(abstains(one.text) for one in rest):
            raise ModelFailed(f"none of {len(rest)} segments could be judged: {failed[0].why}")
        scores = [score_of(one.as_segment(), weights) for one in full]
        best = scores.index(max(scores)) if scores else None
        spent = segments.count(None)
        why = (
            f"none of {len(rest)} passages supports an answer"
            if segments
            else "no passage was found to write from"
        )
        if best is not None:
            why = f"its weighted score {scores[best]:.2f} is the highest of {len(full)}"
        if spent:
            why += f"; the budget was spent before {spent} more"
        tree = tuple(
            replace(one.as_segment(), score=score, path=score, chosen=at == best)
            for at, (one, score) in enumerate(zip(full, scores, strict=True))
        )
        decision = "abstain" if best is None else f"segment {best + 1} of {len(full)}"
        unjudged = tuple(one.as_segment() for one in rest)
        self.span.output = SegmentTree(decision, why, tree, dict(weights), unjudged=unjudged)
        if best is None:
            return Draft(NOT_ANSWERED, abstained=True)
        return Draft(f"{full[best].text} [1]", (full[best].passage,))


def judged_in_full(one: JudgedSegment | None) -> TypeGuard[JudgedSegment]:
    """Return True if a segment was written and has all three judgements."""
    return one is not None and None not in (one.relevance, one.support, one.utility)
