"""An answer copied from the passages, sentence by sentence: every route has one without a language model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.steps.cite import NOT_ANSWERED, Draft, sentences
from core.steps.refine import Refine
from core.steps.step import step
from core.types import Ranking

EVIDENCE = 0.5  # cosine of the best sentence from which the passages are taken to answer the question
NEAR = 0.12  # below the best sentence's cosine by at most this, another is part of the answer
SENTENCES = 3
LONGEST = 400  # characters of one sentence: what is longer is a table or a list, and cut


class Extract(Refine):
    """Extractive answers."""

    @step("CHAIN", "copy the best sentences")
    def extract_answer(
        self, text: str, hits: Ranking, excerpts: Mapping[str, str] | None = None, floor: float = EVIDENCE
    ) -> Draft:
        """Up to three sentences of `hits` whose cosine with `text` is highest, in the order of the ranking,
        each with the marker of its passage.

        Where even the best is below `floor` there is no answer. No model writes anything here: every word
        stands in a passage.
        """
        pieces = [
            (number, hit.passage.id, sentence[:LONGEST])
            for number, hit in enumerate(hits, 1)
            for sentence in sentences((excerpts or {}).get(hit.passage.id, hit.passage.text))
        ]
        distinct = list(
            {sentence: (number, id, sentence) for number, id, sentence in reversed(pieces)}.values()
        )
        distinct.sort(key=lambda piece: pieces.index(piece))
        if not distinct:
            self.span.inputs["note"] = "there is no sentence to copy"
            self.span.output = NOT_ANSWERED
            return Draft(NOT_ANSWERED, abstained=True)
        scores = self.context.embedder.embed([sentence for *_, sentence in distinct]) @ self.embed(text)
        best = float(scores.max())
        self.span.inputs |= {"sentences": len(distinct), "best": best, "floor": floor}
        if best < floor:
            self.span.inputs["note"] = "no sentence is near enough to the question"
            self.span.output = NOT_ANSWERED
            return Draft(NOT_ANSWERED, abstained=True)
        order = sorted(range(len(distinct)), key=lambda at: (-scores[at], at))
        chosen = sorted(at for at in order[:SENTENCES] if scores[at] >= max(floor, best - NEAR))
        self.span.inputs["cosines"] = [float(np.round(scores[at], 4)) for at in chosen]
        self.span.output = " ".join(f"{distinct[at][2]} [{distinct[at][0]}]" for at in chosen)
        return Draft(self.span.output, tuple(dict.fromkeys(distinct[at][1] for at in chosen)))
