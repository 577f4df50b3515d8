"""Steps that write answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from core.steps.cite import NOT_ANSWERED, Draft, resolve
from core.steps.extract import EVIDENCE as NEAR_ENOUGH
from core.steps.extract import Extract
from core.steps.grade import yes_probability
from core.steps.prompts import ANSWER, EVIDENCE
from core.steps.step import step
from core.steps.untrusted import quoted
from core.types import Answer, AnswerOrder, Ranking

T = TypeVar("T")
SHOWN = 5  # passages given to the model


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whether there is enough to answer from; `score` is P(Yes), None where it could not be had."""

    decision: Literal["answer", "abstain"]
    why: str
    score: float | None
    threshold: float


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
            return self.extract_answer(text, read, kept, NEAR_ENOUGH).over(hits)
        return self.write_answer(text, read, kept, style.order).over(hits)

    @step("LLM", "write answer")
    def write_answer(
        self,
        text: str,
        hits: Ranking,
        excerpts: Mapping[str, str] | None = None,
        order: AnswerOrder = "best first",
        evidence: float | None = None,
    ) -> Draft:
        """An answer from `hits` with [n] markers resolved to passage ids; what is wrong with them is noted.

        Without hits, or where the model thinks it less likely than `evidence` that they hold the answer, the
        text says that there is none (0: do not ask; None: as the request or the settings say). Routes whose
        method is to write call this whether or not answers were asked for.
        """
        if not hits:
            self.span.inputs["note"] = "nothing was found, so the model was not asked"
            return self._noted(Draft(NOT_ANSWERED, abstained=True))
        read = reading_order(hits, order)
        self.span.inputs["shown"] = [hit.passage.id for hit in read]
        floor = self.context.evidence if evidence is None else evidence
        if floor > 0 and self.evidence(text, read, excerpts, floor).decision == "abstain":
            return self._noted(Draft(NOT_ANSWERED, abstained=True))
        reply = self._ask(
            ANSWER, max_tokens=160, reuse_prefix=True, stream=True,
            passages=quoted(read, excerpts), question=text,
        )  # fmt: skip
        return self._noted(resolve(reply.text, [hit.passage.id for hit in read]))

    @step("EVALUATOR", "is the answer in the passages")
    def evidence(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None, threshold: float
    ) -> Evidence:
        """Whether to answer from `hits`, in this order: the model's P(Yes) that they state the answer against
        `threshold`; where the endpoint gives no probabilities, its word.

        A reply that is neither Yes nor No keeps no answer back: it is no evidence of anything.
        """
        reply = self._ask(
            EVIDENCE, max_tokens=1, top_logprobs=10, logprobs_optional=True, reuse_prefix=True,
            passages=quoted(hits, excerpts), question=text,
        )  # fmt: skip
        score = yes_probability(reply)
        if score is not None:
            enough = score >= threshold
            why = f"P(Yes) {score:.2f} is {'at least' if enough else 'below'} {threshold:g}"
            return Evidence("answer" if enough else "abstain", why, score, threshold)
        word = reply.text.strip().strip(".,!*\"'").lower()
        if word in ("yes", "no"):
            why = f"the model said {word}, and the endpoint gives no probabilities"
            return Evidence("answer" if word == "yes" else "abstain", why, None, threshold)
        return Evidence("answer", f"not checked: neither Yes nor No but {reply.text[:40]!r}", None, threshold)

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
