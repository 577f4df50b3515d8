"""Steps that turn the question into something else to search with."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal

from core.backends.prompting.prompts import HYDE, REWRITE, STEP_BACK, VARIANTS, WEB_QUERY
from core.backends.prompting.replies import first_line, reply_lines
from core.domain.errors import ModelFailed, Unavailable
from core.domain.outputs import Rewrite
from core.domain.types import Query
from core.steps.base import StepBase
from core.steps.step import step

ALIKE = 0.8  # share of common words from which two searches are one
WORDINGS = 20_000  # texts whose wording is remembered: names and titles come again and again


class Transform(StepBase):
    """Rewriting, variants, a more general question, hypothetical passages, keywords."""

    @step("LLM", "rewrite as a standalone question", returns=str)
    def standalone(self, query: Query) -> str:
        """Rewrite the last message as a standalone question; without a conversation it is returned unchanged
        and no model is called.

        Source: Ma et al. 2023, "Query Rewriting for Retrieval-Augmented LLMs", arXiv:2305.14283;
        conversational form as in Vakulenko et al. 2021, arXiv:2004.14652.
        """
        if not query.history:
            self.span.kind = "CHAIN"
            self.span.attributes["note"] = "no earlier conversation; the question is used unchanged"
            return self._one(query.text, query.text)
        history = "\n".join(f"{turn.role}: {turn.text}" for turn in query.history[-6:])
        answer = self._ask(REWRITE, max_tokens=60, unusable=_one_line, history=history, question=query.text)
        return self._one(query.text, first_line(answer.text))

    def _one(self, before: str, after: str, role: Literal["question", "keywords"] = "question") -> str:
        """`after`, recorded as what the step wrote of `before`."""
        self.span.output = Rewrite(before, (after,), role)
        return after

    @step("LLM", "write query variants", returns=tuple[str, ...])
    def variants(self, text: str, n: int) -> tuple[str, ...]:
        """Return `n` rephrasings (fewer, with a note on the span, if the model repeats itself).

        Source: Rackauckas 2024, "RAG-Fusion", arXiv:2402.03367.
        """

        def too_few(reply: str) -> str | None:
            got = len(_lines(reply, text))
            return None if got >= n else f"{got} of {n} queries, one a line"

        answer = self._ask(VARIANTS, max_tokens=30 * n + 20, unusable=too_few, question=text, n=str(n))
        found = _lines(answer.text, text)[:n]
        if len(found) < n:
            self.span.attributes["note"] = f"the model gave {len(found)} of {n} variants, even after a retry"
        self.span.output = Rewrite(text, found, "variants")
        return found

    @step("LLM", "write a more general question", returns=str)
    def step_back(self, text: str) -> str:
        """Return a question about the rule or principle that `text` depends on, or `text` itself, with a
        note, if the model repeats it.

        Source: Zheng et al. 2023, "Take a Step Back", arXiv:2310.06117, section 2.
        """
        reply = self._ask(STEP_BACK, max_tokens=60, unusable=_one_line, question=text)
        general = next(iter(reply_lines(reply.text)), "")
        if wording(general) in ("", wording(text)):
            said = "gave the question back" if general else "gave no question"
            self.span.attributes["note"] = f"the model {said}: nothing more general is searched"
            return self._one(text, text)
        return self._one(text, general)

    @step("LLM", "write hypothetical passages", returns=tuple[str, ...])
    def hypothesize(self, text: str, n: int, instruction: str = "") -> tuple[str, ...]:
        """`n` imagined passages that would answer the question; sampled with seeds 0..n-1 where n > 1, side
        by side if the model is not on this machine.

        Source: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval ...", arXiv:2212.10496, section 3.2.
        """
        prompt = HYDE.with_instruction(instruction)
        heat = 0.0 if n == 1 else 0.7

        def sample(seed: int) -> str:
            return self._ask(
                prompt, max_tokens=120, temperature=heat, seed=seed, unusable=_some_text, question=text
            ).text.strip()

        written = tuple(map(sample, range(n))) if self.context.llm.local else self.each(sample, range(n))
        self.span.output = Rewrite(text, written, "passages")
        return written

    @step("LLM", "write web search keywords", returns=str)
    def web_keywords(self, text: str) -> str:
        """Rewrite the question as keywords for a web search, or return the question itself, with a note, if
        the model provides none.

        Source: Yan et al. 2024, arXiv:2401.15884, section 4.4.
        """
        try:
            reply = self._ask(WEB_QUERY, max_tokens=30, unusable=_one_line, question=text).text
        except (Unavailable, ModelFailed) as error:
            self.span.attributes["note"] = (
                f"no keywords were written, so the question itself is searched: {error}"
            )
            return self._one(text, text, "keywords")
        return self._one(text, first_line(reply) or text, "keywords")


@lru_cache(WORDINGS)
def wording(text: str) -> str:
    """Return the words of `text` in lower case with single spaces, so that texts which differ only in case,
    punctuation and spacing are equal.
    """
    kept = (" " if unicodedata.category(char)[0] == "P" else char for char in text.casefold())
    return " ".join("".join(kept).split())


def shared(words: set[str], text: str) -> float:
    """Return the share of common words (Jaccard), 0 to 1; 0 for two texts without words."""
    other = set(wording(text).split())
    return len(words & other) / len(words | other) if words | other else 0.0


def _one_line(reply: str) -> str | None:
    return None if first_line(reply) else "an empty reply"


def _some_text(reply: str) -> str | None:
    return None if len(reply.split()) >= 5 else "a passage of fewer than five words"


def _lines(reply: str, original: str) -> tuple[str, ...]:
    """Return the distinct non-empty lines without bullets and numbers, except the question itself."""
    seen = {original.casefold().strip(): ""}
    for line in reply_lines(reply):
        seen.setdefault(line.casefold(), line)
    return tuple(line for line in seen.values() if line)
