"""Steps that write answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from core.steps.cite import NOT_ANSWERED, Draft, resolve
from core.steps.extract import EVIDENCE, Extract
from core.steps.prompts import ANSWER
from core.steps.step import step
from core.steps.untrusted import quoted
from core.types import Answer, AnswerOrder, Ranking

T = TypeVar("T")
SHOWN = 5  # passages given to the model


class Generate(Extract):
    """Answers from passages, with citations."""

    def answer(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None = None, shown: int = SHOWN
    ) -> Answer:
        """The route's outcome: its ranking, and an answer where one was asked for (they cost most).

        It is written from the first `shown` hits; `excerpts` gives the text to show in place of a passage's
        own. How it is written is the request's choice: by the model, or by copying sentences.
        """
        style = self.context.answering
        if style is None:
            return Answer(hits)
        read, kept = hits[:shown], dict(excerpts or {})
        if style.by == "extract":
            return self.extract_answer(text, read, kept, EVIDENCE).over(hits)
        return self.write_answer(text, read, kept, style.order).over(hits)

    @step("LLM", "write answer")
    def write_answer(
        self,
        text: str,
        hits: Ranking,
        excerpts: Mapping[str, str] | None = None,
        order: AnswerOrder = "best first",
    ) -> Draft:
        """An answer from `hits` with [n] markers resolved to passage ids; what is wrong with them is noted.

        Without hits there is no evidence: the answer says so, and no model is asked. Routes whose method is
        to write call this whether or not answers were asked for.
        """
        if not hits:
            self.span.inputs["note"] = "nothing was found, so the model was not asked"
            return self._noted(Draft(NOT_ANSWERED, abstained=True))
        read = reading_order(hits, order)
        reply = self._ask(
            ANSWER, max_tokens=160, reuse_prefix=True, stream=True,
            passages=quoted(read, excerpts), question=text,
        )  # fmt: skip
        return self._noted(resolve(reply.text, [hit.passage.id for hit in read]))

    def _noted(self, draft: Draft) -> Draft:
        """`draft`, with what a reader of the step has to know put on its span."""
        self.span.output = draft.text
        if draft.abstained:
            self.span.inputs["abstained"] = True
        if draft.wrong:
            self.span.inputs["wrong citations"] = list(draft.wrong)
        if draft.uncited:
            self.span.inputs["sentences without citation"] = list(draft.uncited)
        return draft


def reading_order(items: Sequence[T], order: AnswerOrder) -> tuple[T, ...]:
    """`items`, best first, as the model is to read them.

    "best at both ends" puts the best first, the second last and the weakest into the middle, where models
    overlook most.
    Source: Liu et al. 2024, "Lost in the Middle: How Language Models Use Long Contexts", arXiv:2307.03172,
    section 2.3.
    """
    if order == "best first":
        return tuple(items)
    return (*items[::2], *reversed(items[1::2]))
