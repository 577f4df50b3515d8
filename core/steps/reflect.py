"""Steps that ask whether what a search found holds the answer, and search again where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.prompts import REFORMULATE
from core.backends.prompting.replies import first_line
from core.backends.prompting.untrusted import in_line, quoted
from core.domain.outputs import Decision, Rewrite, Selection
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.generate import Generate
from core.steps.step import step
from core.steps.transform import ALIKE, shared, wording

Next = Literal["enough", "try again", "stop"]
Reason = Literal["good enough", "no gain", "same question", "rounds used up", "nothing found", "budget spent"]
MAX_SHOWN_PASSAGES = 3  # passages that a reformulation is told of
EXCERPT = 200  # characters of each


@dataclass(frozen=True, slots=True)
class Reflection(Decided):
    """One round of reflection: the search text, the score of its hits, and the decision."""

    decision: Next
    searched: str  # the search text
    number: int
    score: float | None  # P(Yes) that the hits contain the answer; None if the model said neither Yes nor No
    gain: float | None  # `score` minus that of the round before
    threshold: float
    reason: Reason | None

    SCORE = "score"
    FIRES = (("try again", "enough"),)


class Reflect(Generate):
    """Rounds of searching and reflecting."""

    @step("EVALUATOR", "reflect on the round", returns=Reflection)
    def reflect(
        self,
        text: str,
        searched: str,
        hits: Ranking,
        earlier: tuple[float | None, ...],
        threshold: float,
        gain: float,
        rounds: int,
    ) -> Reflection:
        """P(Yes) that `hits`, found by `searched`, hold the answer to `text`; see `next_round`.

        `earlier` are the scores of the rounds before. It is the question that an answer's step asks of the
        same passages, so an answer written from them does not pay for it again.
        Source: Madaan et al. 2023, "Self-Refine", arXiv:2303.17651, section 2, put to a search.
        """
        before = earlier[-1] if earlier else None
        number = len(earlier) + 1
        score = self.evidence(text, hits, None, threshold).score if hits else None
        decision, reason = next_round(score, before, number, threshold, gain, rounds)
        more = None if score is None or before is None else score - before
        told = "none" if score is None else f"{score:.2f}"
        told += "" if more is None else f", gain {more:+.2f} (at least {gain:g})"
        why = f"P(Yes) {told}, enough from {threshold:.2f}: {reason or f'round {number} of {rounds}'}"
        return Reflection(decision, why, searched, number, score, more, threshold, reason)

    @step("LLM", "ask in another way", returns=str)
    def reformulate(self, text: str, found: Ranking, tried: tuple[str, ...]) -> str:
        """Another query to search with, written with sight of what was found and what was searched for.

        Source: Madaan et al. 2023, "Self-Refine", arXiv:2303.17651, section 2 (feedback in the prompt), put
        to a question instead of a text.
        """
        shown = found[:MAX_SHOWN_PASSAGES]
        reply = self._ask(
            REFORMULATE,
            max_tokens=40,
            stop=("\n",),
            unusable=lambda said: None if wording(first_line(said)) else "an empty reply",
            passages=quoted(shown, {hit.passage.id: hit.passage.text[:EXCERPT] for hit in shown}),
            question=text,
            tried="\n".join(f"- {in_line(one)}" for one in tried),
        )
        other = first_line(reply.text)
        self.span.output = Rewrite(text, (other,), "question")
        return other

    @step("CHAIN", "is it another question", returns=bool)
    def another(self, question: str, tried: tuple[str, ...]) -> bool:
        """Return True if `question` was not searched before: it shares less than `ALIKE` of its words with
        every earlier one.
        """
        asked = set(wording(question).split())
        known = next((n for n, one in enumerate(tried, 1) if shared(asked, one) >= ALIKE), None)
        new = known is None and bool(asked)
        told = "is new" if new else f"has the words of round {known}" if known else "has no words"
        decision, reason = ("try again", None) if new else ("stop", "same question")
        why = f"the question {told}"
        self.span.output = Decision(decision, ("try again", "stop"), why, details={"reason": reason})
        return new

    @step("CHAIN", "keep the best round", returns=Ranking)
    def best_round(
        self, found: tuple[Ranking, ...], rounds: tuple[Reflection, ...], reason: Reason | None
    ) -> Ranking:
        """Return the ranking of the round with the highest score, the first of equals. Without any score,
        that is the first search, with the user's own question.
        """
        scores = [one.score for one in rounds]
        known = [(score, -at) for at, score in enumerate(scores) if score is not None]
        by_round = ", ".join(f"{score:.2f}" for score, _ in known) or "none"
        told = f"stopped: {reason or 'forced'}; P(Yes) by round: {by_round}"
        best = -max(known)[1] if known else 0
        decision = f"round {best + 1} of {len(rounds)}" if known else "as found"
        self.span.output = Selection(
            "round", at=best if found else None, decision=decision, reason=reason or "forced", why=told
        )
        return found[best] if found else ()


def next_round(
    score: float | None, before: float | None, number: int, threshold: float, gain: float, rounds: int
) -> tuple[Next, Reason | None]:
    """Decide how to continue after round `number` of at most `rounds`, from its score and that of the round
    before.
    """
    if score is None:
        return "stop", "nothing found"
    if score >= threshold:
        return "enough", "good enough"
    if before is not None and score - before < gain:
        return "stop", "no gain"
    return ("stop", "rounds used up") if number >= rounds else ("try again", None)
