"""An answer copied from the passages, sentence by sentence: every route has one without a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.backends.prompting.citations import NOT_ANSWERED, Draft, sentences
from core.domain.outputs import Written
from core.domain.text import searchable
from core.domain.types import Ranking
from core.steps.refine import Refine
from core.steps.step import step

# Evidence of the best passage from which the passages are taken to answer the question: the highest balanced
# accuracy, over half of clapnq-dev and support's dev questions. On the others: AUC .78 and .77; 82 % and 30 %
# of the abstentions were right, 11 % and 49 % of the answerable questions were given up.
EVIDENCE = 0.51
NEAR = 0.2  # below the best sentence's score by at most this, another is part of the answer
SENTENCES = 3
MAX_SENTENCE_CHARS = 400  # characters of one sentence: what is longer is a table or a list, and cut


class Extract(Refine):
    """Extractive answers."""

    @step("CHAIN", "copy the best sentences", returns=Draft)
    def extract_answer(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None = None, floor: float = EVIDENCE
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
        fit: NDArray[np.float64] = (cosines + np.array([share(asked, have) for have in having])) / 2
        return fit

    def _not_copied(self, note: str, noted: Written) -> Draft:
        self.span.attributes["note"] = note
        self.span.output = replace(noted, text=NOT_ANSWERED, abstained=True)
        return Draft(NOT_ANSWERED, abstained=True, shown=noted.shown)


def share(asked: Mapping[str, float], have: set[str]) -> float:
    """Return the share of the weight of the terms `asked` that are in `have`, or 0 if no term has weight."""
    total = sum(asked.values())
    return sum(weight for term, weight in asked.items() if term in have) / total if total else 0.0
