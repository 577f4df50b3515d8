"""Steps that write answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.steps.base import StepBase
from core.steps.prompts import ANSWER
from core.steps.step import step
from core.types import Answer, Ranking

_CITATION = re.compile(r"\[(\d{1,3})\]")
SHOWN = 5  # passages given to the model


class Generate(StepBase):
    """Answers from passages, with citations."""

    def answer(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None = None, shown: int = SHOWN
    ) -> Answer:
        """The route's outcome: its ranking, and an answer where one was asked for (they cost most).

        The model is shown the first `shown` hits; `excerpts` gives the text to show in place of a passage's
        own.
        """
        if not self.context.write_answer or not hits:
            return Answer(hits)
        return self.write_answer(text, hits[:shown], dict(excerpts or {}), hits)

    @step("LLM", "write answer")
    def write_answer(self, text: str, hits: Ranking, excerpts: dict[str, str], ranking: Ranking) -> Answer:
        """An answer from `hits` with [n] citations resolved to passage ids; wrong ones are noted."""
        passages = "\n\n".join(
            f"[{n}] {hit.passage.title}\n{excerpts.get(hit.passage.id, hit.passage.text)}"
            for n, hit in enumerate(hits, 1)
        )
        reply = self._ask(ANSWER, max_tokens=160, passages=passages, question=text).text.strip()
        numbers = [int(n) for n in dict.fromkeys(_CITATION.findall(reply))]
        wrong = [n for n in numbers if not 1 <= n <= len(hits)]
        if wrong:
            self.span.inputs["wrong citations"] = wrong
        self.span.inputs.pop("ranking", None)
        self.span.output = reply
        return Answer(ranking, reply, tuple(hits[n - 1].passage.id for n in numbers if n not in wrong))
