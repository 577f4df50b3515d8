"""Steps that put the whole corpus into the prompt instead of searching it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from core.backends.prompting.citations import NOT_ANSWERED, Draft, resolve
from core.backends.prompting.prompts import ANSWER
from core.backends.prompting.untrusted import quoted
from core.domain.errors import ModelTimedOut, Unavailable
from core.domain.outputs import Search, Selection
from core.domain.types import Hit, Passage, Ranking
from core.steps.decisions import Decided
from core.steps.generate import Generate
from core.steps.step import step

BYTES = 4  # of UTF-8 in a token of the usual tokenizers, about
MARKS = 12  # tokens of the marks around a passage, about
WRITTEN = 160  # tokens an answer may have
RESERVED = WRITTEN + 352  # with the instructions and a question of usual length


Chosen = Literal["answer from what was found", "read the whole corpus", "abstain"]


@dataclass(frozen=True, slots=True)
class FoundOrAll(Decided):
    """The decision what to answer from."""

    decision: Chosen
    score: float | None  # P(Yes) that the hits contain the answer; None if unavailable
    threshold: float
    ways: tuple[str, ...]  # the second one depends on the corpus

    SCORE = "score"
    FIRES = tuple((way, "answer from what was found") for way in ("read the whole corpus", "abstain"))


class FullContext(Generate):
    """Cache-augmented generation: every passage in every prompt, at its beginning.

    Source: Chan et al. 2024, "Don't Do RAG: When Cache-Augmented Generation is All You Need for Knowledge
    Tasks", arXiv:2412.15605, section 2. There the cache of the corpus is computed beforehand and kept; here
    the endpoint keeps it from one question to the next, as long as nothing else is asked in between.
    """

    @step("CHAIN", "take the whole corpus", returns=Ranking)
    def whole_corpus(self) -> Ranking:
        """Every passage in the order of the documents; none is ranked, so all score 0.

        Raises Unavailable when they do not fit the model's context.
        """
        passages, lack = self._everything()
        if lack:
            raise Unavailable(lack)
        self.span.output = Search(where=self.context.where)
        passages.sort(key=lambda passage: (passage.doc_id, passage.start, passage.id))
        return tuple(Hit(passage, 0.0) for passage in passages)

    def _everything(self) -> tuple[list[Passage], str | None]:
        """Every passage, and why they are not put before the model, or None; the span gets the sizes."""
        corpus, context = self.context.corpus, self.context.llm_context
        passages = []
        if estimate(corpus.size, 0) + RESERVED <= context:  # else they need not even be read
            allowed = self.allowed()
            passages = [passage for row, passage, _ in corpus.everything() if allowed is None or allowed[row]]
        size = sum(len(f"{p.title}\n{p.text}".encode("utf-8", "replace")) for p in passages)
        self.span.attributes |= {
            "passages": corpus.size,
            "tokens, estimated": estimate(corpus.size, size),
            "context": context,
        }
        return passages, too_long(corpus.name, corpus.size, size, context)

    @step("EVALUATOR", "is what was found enough", returns=FoundOrAll)
    def found_or_all(self, text: str, hits: Ranking, threshold: float) -> FoundOrAll:
        """Decide whether to answer from `hits`, from the whole corpus if it fits the model's context, or not
        at all, by the model's P(Yes) that `hits` state the answer; see `evidence`.

        Source: Li et al. 2024, "Retrieval Augmented Generation or Long-Context LLMs?", arXiv:2407.16833,
        section 4. There the model writes "unanswerable"; here one token's probability is compared with
        `threshold`. Abstaining when the corpus does not fit is our addition.
        """
        enough = self.evidence(text, hits, None, threshold) if hits else None
        _, lack = self._everything()
        other: Chosen = "abstain" if lack else "read the whole corpus"
        ways = ("answer from what was found", other)
        score = enough.score if enough else None
        if enough is not None and enough.decision == "answer":
            return FoundOrAll("answer from what was found", enough.why, score, threshold, ways)
        why = enough.why if enough else "nothing was found"
        why += f"; {lack or 'the whole corpus fits the context'}"
        return FoundOrAll(other, why, score, threshold, ways)

    @step("LLM", "answer from the whole corpus", returns=Draft)
    def answer_from_all(self, text: str, hits: Ranking) -> Draft:
        """Write a cited answer from the whole corpus; the span records how much of the prompt was cached."""
        if not hits:
            self.note("the corpus is empty, so the model was not called")
            return Draft(NOT_ANSWERED, abstained=True)
        try:
            reply = self._ask(
                ANSWER,
                max_tokens=WRITTEN,
                reuse_prefix=True,
                stream=True,
                passages=quoted(hits),
                question=text,
            )
        except ModelTimedOut as error:
            raise ModelTimedOut(
                f"{error}; the first question reads all {len(hits)} passages; increase llm_timeout_s"
            ) from error
        self.span.attributes["prompt tokens"] = reply.prompt_tokens
        self.span.attributes["read before"] = reply.cached_tokens
        if not reply.cached_tokens:
            self.note("the model read the whole corpus for this question, and keeps it for the next one")
        return resolve(reply.text, [hit.passage.id for hit in hits])

    @step("CHAIN", "list the cited passages", returns=Ranking)
    def cited(self, hits: Ranking, citations: tuple[str, ...]) -> Ranking:
        """Return the cited hits in the order of citation. Their score is 1 / place, which says nothing about
        relevance.
        """
        self.span.output = Selection("named", why="those the answer cites")
        if not citations:
            self.note("the answer cites no passage, and nothing was searched: none is listed")
        known = {hit.passage.id: hit.passage for hit in hits}
        return tuple(Hit(known[id], 1 / place) for place, id in enumerate(citations, 1))


def estimate(passages: int, size: int) -> int:
    """About how many tokens `passages` with `size` bytes of text and titles (UTF-8) are in a prompt."""
    return math.ceil(size / BYTES) + MARKS * passages


def too_long(corpus: str, passages: int, size: int, context: int) -> str | None:
    """Why a corpus does not fit a context of tokens and what to do, or None; `size` 0 is not counted."""
    tokens = estimate(passages, size)
    if tokens + RESERVED <= context:
        return None
    many = f"{'about' if size else 'more than'} {tokens:,} tokens (estimated)"
    return (
        f"corpus {corpus} has {many} and the model's context leaves {max(0, context - RESERVED):,} for it:"
        f" take a smaller corpus, or set llm_context above {tokens + RESERVED:,} if the model can"
    )
