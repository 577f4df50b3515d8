"""Steps of routes that search again with what they found, and the reasons for which they stop."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.citations import sentences, unmarked
from core.backends.prompting.prompts_agentic import NEXT_SENTENCE
from core.backends.prompting.untrusted import quoted
from core.domain.outputs import Fusion
from core.domain.types import Ranking
from core.steps.decisions import Decided
from core.steps.retrieve import Retrieve
from core.steps.step import step
from core.steps.transform import wording

Stop = Literal["answered", "steps used up", "nothing new", "repeated", "budget spent"]
ANSWER = 4  # model calls that an answer may take: whether there is one, the answer, each asked twice
_ANSWER = re.compile(r"\banswer\s+is\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Round(Decided):
    """Whether a loop goes on, or why it stops."""

    decision: Literal["go on"] | Stop
    why: str


@dataclass(frozen=True, slots=True)
class Thought(Decided):
    """One sentence of reasoning and what follows from it."""

    sentence: str
    decision: Literal["search", "answered", "nothing new", "repeated"]
    why: str

    TEXT = "sentence"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a search gave: passages, how many of the first are new, their best cosine with the question."""

    passages: int
    new: int
    nearest: float | None


def collect(collected: Ranking, found: Ranking, each: int, keep: int) -> Ranking:
    """`collected`, then those of the first `each` of `found` that it lacks, `keep` in all.

    The order is that of finding, so that a prompt about them begins as the one before it did.
    """
    known = {hit.passage.id for hit in collected}
    return (*collected, *(hit for hit in found[:each] if hit.passage.id not in known))[:keep]


def follow(sentence: str, before: tuple[str, ...]) -> Thought:
    """What follows from a `sentence` of reasoning; `before` is the question and the sentences until now."""
    if not wording(sentence):
        return Thought(sentence, "nothing new", "the model wrote no sentence")
    if _ANSWER.search(sentence):
        return Thought(sentence, "answered", "the sentence gives an answer")
    if wording(sentence) in map(wording, before):
        return Thought(sentence, "repeated", "it is the question or an earlier sentence again")
    return Thought(sentence, "search", "the sentence is new and gives no answer: it is searched with")


class Iterate(Retrieve):
    """Interleaved retrieval and reasoning."""

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

    @step("CHAIN", "collect what is new")
    def collect(self, collected: Ranking, found: Ranking, each: int, keep: int) -> Ranking:
        """See `collect`; the span tells which passages are new."""
        kept = collect(collected, found, each, keep)
        self.span.output = Fusion("collect", new=tuple(hit.passage.id for hit in kept[len(collected) :]))
        return kept

    @step("CHAIN", "count what was found")
    def seen(self, question: str, hits: Ranking, collected: Ranking, each: int) -> Seen:
        """How many `hits` there are, how many of the first `each` are not in `collected`, and the best
        cosine of these with the question.
        """
        known = {hit.passage.id for hit in collected}
        new = sum(hit.passage.id not in known for hit in hits[:each])
        if not hits:
            return Seen(0, 0, None)
        cosines = self.vectors_of(hits[:each]) @ self.embed(question)
        return Seen(len(hits), new, round(float(cosines.max()), 4))

    @step("CHAIN", "go on or stop")
    def another_round(self, done: int, steps: int, new: int, lacking: str) -> Round:
        """Whether to reason once more after `done` sentences, when the last search gave `new` passages."""
        if done >= steps:
            return Round("steps used up", f"{done} of {steps} sentences are written")
        if not new:
            return Round("nothing new", "the last search added no passage to those collected")
        if lacking:
            return Round("budget spent", lacking)
        return Round("go on", f"{new} new passages, {done} of {steps} sentences are written")

    @step("AGENT", "reason one sentence")
    def next_sentence(self, question: str, collected: Ranking, said: tuple[str, ...]) -> Thought:
        """The next sentence of a chain of thought over `collected`; of a longer reply only the first counts.

        Source: Trivedi et al. 2023, "Interleaving Retrieval with Chain-of-Thought Reasoning ...",
        arXiv:2212.10509, section 3.
        """
        reply = self._ask(
            NEXT_SENTENCE, max_tokens=60, stop=("\n",), reuse_prefix=True, unusable=_no_sentence,
            passages=quoted(collected), question=question, said="\n".join(said),
        )  # fmt: skip
        return follow(next(iter(sentences(unmarked(reply.text))), ""), (question, *said))


def _no_sentence(reply: str) -> str | None:
    return None if wording(reply) else "no sentence"
