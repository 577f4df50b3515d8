"""Steps that write answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from core.backends.prompting.citations import NOT_ANSWERED, Draft, resolve
from core.backends.prompting.prompts import ANSWER, EVIDENCE
from core.backends.prompting.untrusted import quoted
from core.domain.errors import Cancelled, RouteScopeError, describe
from core.domain.types import Answer, AnswerBasis, AnswerOrder, Ranking
from core.steps.decisions import Decided
from core.steps.extract import EVIDENCE as NEAR_ENOUGH
from core.steps.extract import Extract
from core.steps.grade import yes_or_no
from core.steps.step import step

T = TypeVar("T")
DEFAULT_SHOWN_PASSAGES = 5  # passages given to the model


@dataclass(frozen=True, slots=True)
class EvidenceDecision(Decided):
    """The decision whether the passages suffice to answer."""

    decision: Literal["answer", "abstain"]
    why: str
    score: float | None  # P(Yes); None if unavailable
    threshold: float

    SCORE = "score"
    FIRES = (("abstain", "answer"),)


class Generate(Extract):
    """Answers from passages, with citations."""

    def answer(
        self,
        text: str,
        hits: Ranking,
        excerpts: Mapping[str, str] | None = None,
        shown: int = DEFAULT_SHOWN_PASSAGES,
    ) -> Answer:
        """Return the route's ranking, with an answer if one was requested.

        The answer is written from the first `shown` hits; `excerpts` replaces the text of some passages. The
        request chooses whether a model writes it or sentences are copied. If writing fails, the ranking
        stands and the error is recorded on the answer.
        """
        style = self.context.answering
        found = self.ranked(hits, AnswerBasis(text, shown, dict(excerpts or {})))
        if style is None:
            return found
        read, kept = hits[:shown], dict(excerpts or {})
        try:
            if style.by == "extract":
                draft = self.extract_answer(text, read, kept, NEAR_ENOUGH)
            else:
                draft = self.write_answer(text, read, kept, style.order)
        except Cancelled:
            raise
        except RouteScopeError as error:
            return replace(found, error=describe(error))
        return replace(draft.over(hits), basis=found.basis)

    def ranked(self, hits: Ranking, basis: AnswerBasis | None = None) -> Answer:
        """Store the route's ranking, so that it survives a failure of later steps."""
        self.context.found = Answer(hits, basis=basis)
        return self.context.found

    def write_answer(
        self,
        text: str,
        hits: Ranking,
        excerpts: Mapping[str, str] | None = None,
        order: AnswerOrder = "best first",
        evidence: float | None = None,
    ) -> Draft:
        """Write an answer from `hits` with [n] markers resolved to passage ids; wrong markers are noted.

        Abstains without hits, or if the model's probability that they contain the answer is below `evidence`
        (0: do not check; None: the request's or the settings' value). Routes that always write an answer call
        this even if no answer was requested.
        """
        floor = self.context.evidence if evidence is None else evidence
        return self._write_answer(text, hits, excerpts, order, floor)

    @step("LLM", "write answer", returns=Draft)
    def _write_answer(
        self,
        text: str,
        hits: Ranking,
        excerpts: Mapping[str, str] | None,
        order: AnswerOrder,
        evidence: float,
    ) -> Draft:
        if not hits:
            self.span.attributes["note"] = "no passage was found, so the model was not called"
            return Draft(NOT_ANSWERED, abstained=True)
        read = reading_order(hits, order)
        ids = tuple(hit.passage.id for hit in read)
        if evidence > 0 and self.evidence(text, read, excerpts, evidence).decision == "abstain":
            return Draft(NOT_ANSWERED, abstained=True, shown=ids)
        reply = self._ask(
            ANSWER,
            max_tokens=160,
            reuse_prefix=True,
            stream=True,
            passages=quoted(read, excerpts),
            question=text,
        )
        return resolve(reply.text, ids)

    @step("EVALUATOR", "is the answer in the passages", returns=EvidenceDecision)
    def evidence(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None, threshold: float
    ) -> EvidenceDecision:
        """Decide whether to answer from `hits`: compare the model's P(Yes) that they state the answer with
        `threshold`, or use its word if the endpoint reports no probabilities.

        A reply that is neither Yes nor No does not prevent an answer.
        """
        reply = self._ask(
            EVIDENCE,
            max_tokens=1,
            top_logprobs=10,
            reuse_prefix=True,
            passages=quoted(hits, excerpts),
            question=text,
        )
        found = yes_or_no(reply)
        if found is not None and found.by == "probabilities":
            score = found.of["yes"]
            enough = score >= threshold
            why = f"P(Yes) {score:.2f} is {'at least' if enough else 'below'} {threshold:g}"
            return EvidenceDecision("answer" if enough else "abstain", why, score, threshold)
        if found is not None:
            word = "yes" if found.of["yes"] else "no"
            why = f"the model said {word}, and the endpoint gives no probabilities"
            return EvidenceDecision("answer" if word == "yes" else "abstain", why, None, threshold)
        return EvidenceDecision(
            "answer", f"not checked: neither Yes nor No but {reply.text[:40]!r}", None, threshold
        )


def reading_order(items: Sequence[T], order: AnswerOrder) -> tuple[T, ...]:
    """`items`, best first, as the model is to read them.

    "best at both ends" puts the best first, the second last and the weakest into the middle, where models
    overlook most.
    Source: Liu et al. 2024, "Lost in the Middle: How Language Models Use Long Contexts", arXiv:2307.03172,
    section 2.3.
    """
    if order == "best first":
        return items if isinstance(items, tuple) else tuple(items)  # a copy would not know where it is from
    return (*items[::2], *reversed(items[1::2]))
