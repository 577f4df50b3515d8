"""Steps that turn the question into something else to search with."""

from __future__ import annotations

import re

from core.steps.base import StepBase
from core.steps.prompts import HYDE, REWRITE, VARIANTS, WEB_QUERY
from core.steps.step import step
from core.types import Query

_BULLET = re.compile(r"^\s*(?:[-*•]+|\(?\d{1,2}[.):])\s+")


class Transform(StepBase):
    """Rewriting, variants, hypothetical passages, keywords."""

    @step("LLM", "rewrite as a standalone question")
    def standalone(self, query: Query) -> str:
        """The last message as a question of its own; without a conversation it already is one, and no model
        is asked.

        Source: Ma et al. 2023, "Query Rewriting for Retrieval-Augmented LLMs", arXiv:2305.14283;
        conversational form as in Vakulenko et al. 2021, arXiv:2004.14652.
        """
        self.span.inputs["text"] = query.text
        if not query.history:
            self.span.kind = "CHAIN"
            self.span.inputs["note"] = "no conversation before it: the question is used as it is"
            return query.text
        history = "\n".join(f"{turn.role}: {turn.text}" for turn in query.history[-6:])
        answer = self._ask(REWRITE, max_tokens=60, unusable=_one_line, history=history, question=query.text)
        return _first_line(answer.text)

    @step("LLM", "write query variants")
    def variants(self, text: str, n: int) -> tuple[str, ...]:
        """`n` other ways to ask (fewer if the model repeats itself; the span then says so).

        Source: Rackauckas 2024, "RAG-Fusion", arXiv:2402.03367.
        """

        def too_few(reply: str) -> str | None:
            got = len(_lines(reply, text))
            return None if got >= n else f"{got} of {n} queries, one a line"

        answer = self._ask(VARIANTS, max_tokens=30 * n + 20, unusable=too_few, question=text, n=str(n))
        found = _lines(answer.text, text)[:n]
        if len(found) < n:
            self.span.inputs["note"] = f"the model gave {len(found)} of {n} variants, also when asked again"
        return found

    @step("LLM", "write hypothetical passages")
    def hypothesize(self, text: str, n: int, instruction: str = "") -> tuple[str, ...]:
        """`n` imagined passages that would answer the question; sampled with seeds 0..n-1 where n > 1.

        Source: Gao et al. 2022, "Precise Zero-Shot Dense Retrieval ...", arXiv:2212.10496, section 3.2.
        """
        prompt = HYDE.with_instruction(instruction)
        heat = 0.0 if n == 1 else 0.7
        return tuple(
            self._ask(
                prompt, max_tokens=120, temperature=heat, seed=seed, unusable=_some_text, question=text
            ).text.strip()
            for seed in range(n)
        )

    @step("LLM", "write web search keywords")
    def web_keywords(self, text: str) -> str:
        """The question as keywords for a web search (Yan et al. 2024, arXiv:2401.15884, section 4.4)."""
        answer = self._ask(WEB_QUERY, max_tokens=30, unusable=_one_line, question=text)
        return _first_line(answer.text)


def _first_line(reply: str) -> str:
    return next((line.strip().strip('"') for line in reply.splitlines() if line.strip()), "")


def _one_line(reply: str) -> str | None:
    return None if _first_line(reply) else "an empty reply"


def _some_text(reply: str) -> str | None:
    return None if len(reply.split()) >= 5 else "a passage of fewer than five words"


def _lines(reply: str, original: str) -> tuple[str, ...]:
    """The distinct non-empty lines without bullets and numbers, other than the question itself."""
    cleaned = (_BULLET.sub("", line).strip().strip('"') for line in reply.splitlines())
    seen = {original.casefold().strip(): ""}
    for line in cleaned:
        if line and not line.endswith(":"):
            seen.setdefault(line.casefold(), line)
    return tuple(line for line in seen.values() if line)
