"""One question: written by the model about drawn passages, then checked; or dropped, with the reason."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from core.backends.base import LLM, Completion, Embedder, LLMRequest
from core.backends.llm.text import looks_refused
from core.backends.prompting import prompts
from core.backends.prompting.citations import sentences
from core.backends.prompting.replies import first_line
from core.backends.prompting.untrusted import quoted
from core.corpus.corpus import Corpus
from core.domain.fusion import rrf
from core.domain.types import Hit, Passage, Ranking
from core.evaluation.questions import checks
from core.evaluation.questions.draw import Drawn
from core.steps.grade import yes_or_no

Kind = Literal["plain", "vocabulary_mismatch", "comparison", "exact_identifier", "no_answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PROMPTS: Mapping[Kind, prompts.Prompt] = {
    "plain": prompts.PLAIN,
    "vocabulary_mismatch": prompts.VOCABULARY,
    "comparison": prompts.COMPARISON,
    "exact_identifier": prompts.IDENTIFIER,
    "no_answer": prompts.UNANSWERABLE,
}
GRAMMAR = 'root ::= [^\\n?]{12,240} "?"'
SEARCHED = 50  # hits of each cheap route in which the passage has to be found
OTHERS = 2  # other passages that are asked whether they answer it, too
NEAR, FAR = 0.95, 0.3  # cosines between which a passage is compared with another document's
WRITTEN, ANSWER = 60, 40  # tokens of a question, and of its answer
NOT_STATED = "not stated"


class Dropped(Exception):
    """A question is not kept, and why."""


@dataclass(slots=True)
class Writer:
    """The corpus and models that questions are written and checked with. `ms` adds up the model's calls, as
    they took when made.
    """

    corpus: Corpus
    llm: LLM
    embedder: Embedder
    threshold: float  # of P(Yes) that passages answer a question
    timeout: float
    cancel: threading.Event
    ms: float = 0.0
    calls: int = 0
    before: dict[str, set[str]] = field(default_factory=dict)  # terms of earlier questions by id

    def write(self, kind: Kind, drawn: Drawn) -> dict[str, Any]:
        """Return a question as a line of a questions file, without who made it. Raises Dropped, and what the
        model's client raises.
        """
        hits = self._about(kind, drawn)
        shown = quoted(hits)
        asked = self._ask(PROMPTS[kind], WRITTEN, GRAMMAR, passages=shown, identifier=drawn.identifier)
        text = first_line(asked.text)
        texts = [f"{hit.passage.title}\n{hit.passage.text}" for hit in hits]
        terms, shared = checks.terms(text, self.corpus), checks.shared(text, texts, self.corpus)
        if wrong := checks.form(text, texts):
            raise Dropped(wrong)
        if kind == "exact_identifier" and drawn.identifier.casefold() not in text.casefold():
            raise Dropped("does not name the identifier")
        if kind == "vocabulary_mismatch" and shared > checks.SHARED:
            raise Dropped("shares too many words with its passage")
        if checks.same(terms, self.before):
            raise Dropped("the same as an earlier question")
        words = self.corpus.search_sparse(text, SEARCHED)
        near = self.corpus.search_dense(np.asarray(self.embedder.embed_query(text)), SEARCHED)
        found = {"bm25": words, "dense": near, "hybrid": rrf((words, near))[:SEARCHED]}
        ids = [hit.passage.id for hit in hits]
        noted: dict[str, Any] = {"shared terms": round(shared, 2)}
        if kind == "no_answer":
            sure = self._yes(text, found["hybrid"][:3]) if found["hybrid"] else 0.0
            if sure >= self.threshold:
                raise Dropped("the documents may answer it")
            noted["P(yes) of the top passages"] = round(sure, 3)
            labels: dict[str, Any] = {"relevant": [], "answerable": False}
        else:
            answer = first_line(
                self._ask(prompts.SHORT_ANSWER, ANSWER, "", passages=shown, question=text).text
            )
            if not answer or NOT_STATED in answer.casefold():
                raise Dropped("its passage does not answer it, says the model")
            sure = self._yes(text, hits)
            if sure < self.threshold:
                raise Dropped(f"P(yes) that its passage answers it is below {self.threshold:.2f}")
            ranks = {name: checks.rank(ranking, ids) for name, ranking in found.items()}
            if all(rank is None for rank in ranks.values()):
                raise Dropped(f"no route finds its passage among the first {SEARCHED}")
            easy = all(rank == 1 for rank in ranks.values())
            noted |= {"P(yes)": round(sure, 3), "ranks": ranks, "easy": easy}
            others = [hit for hit in found["hybrid"] if hit.passage.id not in ids][:OTHERS]
            also = [hit.passage.id for hit in others if self._yes(text, (hit,)) >= self.threshold]
            if len(others) == OTHERS == len(also):
                raise Dropped("other passages answer it too")
            noted["other passages that answer it"] = also
            labels = {"answer": answer, "relevant": [_label(hit.passage, answer) for hit in hits]}
        digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:10]
        id = f"g-{kind.replace('_', '-')}-{digest}"
        self.before[id] = terms
        line = {"id": id, "text": text, "mode": kind, **labels}
        return line | {"checks": noted, "passages": ids, "prompt": PROMPTS[kind].name}

    def _about(self, kind: Kind, drawn: Drawn) -> Ranking:
        if kind == "exact_identifier" and not drawn.identifier:
            raise Dropped("the passage has no identifier")
        first = Hit(drawn.passage, 1.0)
        if kind != "comparison":
            return (first,)
        for hit in self.corpus.search_dense(self.corpus.vectors([drawn.row])[0], 20):
            if hit.passage.doc_id != drawn.passage.doc_id and FAR <= hit.score < NEAR:
                return first, Hit(hit.passage, 1.0)
        raise Dropped("no passage of another document is about the like")

    def _yes(self, text: str, hits: Ranking) -> float:
        reply = self._ask(prompts.EVIDENCE, 1, "", top_logprobs=10, passages=quoted(hits), question=text)
        found = yes_or_no(reply)
        if found is None:
            raise Dropped(f"neither Yes nor No but {reply.text[:40]!r}")
        return found.of["yes"]

    def _ask(
        self, prompt: prompts.Prompt, max_tokens: int, grammar: str, top_logprobs: int = 0, **values: str
    ) -> Completion:
        request = LLMRequest(
            prompt.name,
            prompt.fill(values),
            max_tokens,
            top_logprobs=top_logprobs,
            grammar=grammar,
            reuse_prefix=True,
        )
        reply = self.llm.complete(request, timeout=self.timeout, cancel=self.cancel)
        self.ms, self.calls = self.ms + reply.ms, self.calls + 1
        if not top_logprobs and looks_refused(reply.text):
            raise Dropped("the model refused")
        return reply


def _label(passage: Passage, answer: str) -> dict[str, Any]:
    """Return the place of the answer in the document: the sentence that has it word for word, else the
    passage.
    """
    wanted = " ".join(answer.casefold().split()).strip(" .\"'")
    said = [one for one in sentences(passage.text) if one in passage.text]
    holding = [one for one in said if wanted and wanted in " ".join(one.casefold().split())]
    return {"doc": passage.doc_id, "grade": 3, "quote": holding[0] if holding else passage.text}
