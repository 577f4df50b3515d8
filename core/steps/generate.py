"""Steps that write answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.backends.prompting.citations import NOT_ANSWERED, Draft, resolve, sentences
from core.backends.prompting.prompts import ANSWER, EVIDENCE
from core.backends.prompting.untrusted import harmless, quoted
from core.domain.errors import Cancelled, RouteScopeError, Unavailable, describe
from core.domain.outputs import Written
from core.domain.text import searchable
from core.domain.types import Answer, AnswerBasis, AnswerOrder, Ranking
from core.steps.decisions import Decided
from core.steps.refine import Refine
from core.steps.step import step

T = TypeVar("T")
DEFAULT_SHOWN_PASSAGES = 5  # passages given to the model


@dataclass(frozen=True, slots=True)
class EvidenceDecision(Decided):
    """The decision whether the passages suffice to answer."""

    decision: Literal["answer", "abstain"]
    score: float | None  # P(Yes); None if unavailable
    threshold: float

    SCORE = "score"
    FIRES = (("abstain", "answer"),)


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


# Evidence of the best passage from which the passages are taken to answer the question: the highest balanced
# accuracy, over half of clapnq-dev and support's dev questions. On the others: AUC .78 and .77; 82 % and 30 %
# of the abstentions were right, 11 % and 49 % of the answerable questions were given up.
NEAR_ENOUGH = 0.51
NEAR = 0.2  # below the best sentence's score by at most this, another is part of the answer
SENTENCES = 3
MAX_SENTENCE_CHARS = 400  # characters of one sentence: what is longer is a table or a list, and cut


def share(asked: Mapping[str, float], have: set[str]) -> float:
    """Return the share of the weight of the terms `asked` that are in `have`, or 0 if no term has weight."""
    total = sum(asked.values())
    return sum(weight for term, weight in asked.items() if term in have) / total if total else 0.0


WRITTEN = 50  # tokens: the paper's answers are short, section 4


class Generate(Refine):
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
            self.note("no passage was found, so the model was not called")
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
        found = self._yes(EVIDENCE, threshold, passages=quoted(hits, excerpts), question=text)
        why = found.why if found.by else f"not checked: {found.why}"
        score = found.share if found.by == "probabilities" else None
        return EvidenceDecision("abstain" if found.enough is False else "answer", why, score, threshold)

    @step("CHAIN", "copy the best sentences", returns=Draft)
    def extract_answer(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None = None, floor: float = NEAR_ENOUGH
    ) -> Draft:
        """Up to three sentences of `hits` that fit `text` best, in the order of the ranking, each with the
        marker of its passage.

        How well a text fits is the mean of its cosine with the question and of the share of the question's
        words, weighed by their IDF, that stand in it; both under the passage's title. Where even the best
        passage is below `floor` there is no answer. No model writes anything: every word stands in a passage.
        """
        ids = tuple(hit.passage.id for hit in hits)
        shown = [(hit, (excerpts or {}).get(hit.passage.id, hit.passage.text)) for hit in hits]
        pieces = {
            sentence[:MAX_SENTENCE_CHARS].rstrip(): (number, hit)
            for number, (hit, whole) in reversed(list(enumerate(shown, 1)))
            for sentence in reversed(sentences(whole))
        }
        distinct = [(number, hit, sentence) for sentence, (number, hit) in reversed(pieces.items())]
        if not distinct:
            return self._not_copied("there is no sentence to copy", Written("", shown=ids, copied=True))
        question = self.embed(text)
        cosines = self.vectors_of(hits) @ question
        evidence = float(self._fit(text, cosines, [(hit.passage.title, whole) for hit, whole in shown]).max())
        self.span.attributes["sentences"] = len(distinct)
        noted = Written("", shown=ids, copied=True, evidence=evidence, floor=float(floor))
        if evidence < floor:
            return self._not_copied("no passage is near enough to the question", noted)
        titled = [(hit.passage.title, sentence) for _, hit, sentence in distinct]
        cosines = self.vectors_of_texts([searchable(*one) for one in titled]) @ question
        scores = self._fit(text, cosines, titled)
        order = sorted(range(len(distinct)), key=lambda at: (-scores[at], at))
        chosen = sorted(at for at in order[:SENTENCES] if scores[at] >= scores[order[0]] - NEAR)
        self.span.attributes["scores"] = [round(float(scores[at]), 4) for at in chosen]
        answer = " ".join(f"{distinct[at][2]} [{distinct[at][0]}]" for at in chosen)
        cited = tuple(dict.fromkeys(distinct[at][1].passage.id for at in chosen))
        self.span.output = replace(noted, text=answer, cited=cited)
        return Draft(answer, cited, shown=ids)

    def _fit(
        self, text: str, cosines: NDArray[np.float32], texts: Sequence[tuple[str, str]]
    ) -> NDArray[np.float64]:
        """Return how well each (title, text) fits the question `text`, shape (n,)."""
        terms = self.context.corpus.terms
        having = ({term for term, _ in terms(searchable(title, body))} for title, body in texts)
        asked = dict(terms(text))
        found: NDArray[np.float64] = (cosines + np.array([share(asked, have) for have in having])) / 2
        return found

    def _not_copied(self, note: str, noted: Written) -> Draft:
        self.note(note)
        self.span.output = replace(noted, text=NOT_ANSWERED, abstained=True)
        return Draft(NOT_ANSWERED, abstained=True, shown=noted.shown)

    def read_together(self, text: str, hits: Ranking) -> Draft:
        """Write a short answer from all `hits` at once, citing the passage with the most decoder attention.

        Raises Unavailable with instructions if the model is missing.
        """
        if hits:
            # Loading the model is no time of this question; the step says why if it cannot be.
            with self.context.trace.aside(), suppress(Unavailable):
                self.context.fid()
        return self._read_together(text, hits)

    @step("LLM", "read the passages together", returns=Draft)
    def _read_together(self, text: str, hits: Ranking) -> Draft:
        """Source: Izacard & Grave 2021, arXiv:2007.01282, section 3; attention as relevance: the same
        authors' arXiv:2012.04584, section 3. The passages are read as data by a model that was trained to
        copy an answer and follows no instructions.
        """
        inputs = self.span.attributes
        if not hits:
            self.note("no passage was found to read")
            return Draft(NOT_ANSWERED, abstained=True)
        reader, passages = self.context.fid(), [hit.passage for hit in hits]
        plain = [replace(p, title=harmless(p.title), text=harmless(p.text)) for p in passages]
        read = reader.read(
            harmless(text), plain, max_tokens=WRITTEN, timeout=self.context.left(), cancel=self.context.cancel
        )
        inputs |= {
            "reader": reader.name,
            "tokens read": read.tokens_read,
            "tokens written": read.tokens_written,
        }
        if read.cut:
            inputs["read in part"] = [passages[at].id for at in read.cut]
        if not read.text:
            self.note("the model wrote nothing")
            return Draft(NOT_ANSWERED, abstained=True)
        most = max(range(len(passages)), key=lambda at: (read.attention[at], -at))
        draft = Draft(f"{read.text} [{most + 1}]", (passages[most].id,), shown=tuple(p.id for p in passages))
        shares = {p.id: round(float(share), 4) for p, share in zip(passages, read.attention, strict=True)}
        self.span.output = replace(draft.recorded(), attention=shares)
        return draft
