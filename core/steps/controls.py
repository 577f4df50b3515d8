"""Steps that change what was found without looking at its words: a cut by scores, and noise."""

from __future__ import annotations

import numpy as np

from core.domain.outputs import Inserted, ScoreCut
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.step import step

LOOKED_AT = 0.9  # share of the scores among which the largest drop is looked for


class Controls(StepBase):
    """Cutting and disturbing rankings."""

    @step("CHAIN", "cut at the largest drop of scores", returns=Ranking)
    def cut_at_drop(self, hits: Ranking, least: int, beyond: int) -> Ranking:
        """Keep the passages before the largest drop between adjacent scores, plus `beyond` more, and at least
        `least`: uncalibrated rerankers often score the first hit far above all others.

        Source: Taguchi, Maekawa & Bhutani 2025, "Efficient Context Selection for Long-Context QA: No Tuning,
        No Iteration, Just Adaptive-k", arXiv:2506.08479, section 3; `least` is our addition.
        """
        scores = [hit.score for hit in hits]
        drop = largest_drop(scores)
        wanted = drop + beyond if drop else len(hits)
        kept = min(len(hits), max(least, wanted))
        size = scores[drop - 1] - scores[drop] if drop else 0.0
        self.span.output = ScoreCut(kept, drop, size, guarded=kept > wanted)
        if not drop and len(hits) > 1:
            self.span.attributes["note"] = "all scores are equal: nothing is cut"
        return hits[:kept]

    @step("CHAIN", "put unrelated passages among those found", returns=Ranking)
    def with_noise(self, hits: Ranking, count: int, top: int, seed: int) -> Ranking:
        """`hits` with `count` passages of the corpus, drawn by `seed` from those that it has not, at
        places drawn among its first `top`. Scores become 1 / rank, as the drawn passages have none.

        Source: Cuconasu et al. 2024, "The Power of Noise: Redefining Retrieval for RAG Systems",
        arXiv:2401.14887, section 4.
        """
        corpus = self.context.corpus
        known = {hit.passage.id for hit in hits}
        taken = {corpus.row(id) for id in corpus.by_ids(sorted(known))}
        allowed = self.allowed()
        every = np.arange(corpus.size) if allowed is None else np.flatnonzero(allowed)
        free = np.setdiff1d(every, sorted(taken))
        rng = np.random.default_rng(seed)
        drawn = corpus.passages(rng.choice(free, min(count, len(free)), replace=False).tolist())
        mixed = [hit.passage for hit in hits]
        for passage in drawn:
            mixed.insert(int(rng.integers(0, min(top, len(mixed) + 1))), passage)
        self.span.output = Inserted(tuple(passage.id for passage in drawn))
        if len(drawn) < count:
            self.span.attributes["note"] = (
                f"{len(drawn)} of {count} passages: the corpus has no more that no search found"
            )
        return tuple(Hit(passage, 1 / rank) for rank, passage in enumerate(mixed, 1))


def largest_drop(scores: list[float]) -> int:
    """Count the scores, best first, before the largest drop between adjacent scores. Only the first LOOKED_AT
    share of them is searched; of equal drops the first counts. Return 0 if the scores never fall.
    """
    looked = max(2, int(len(scores) * LOOKED_AT)) if len(scores) > 1 else 0
    drops = [scores[at] - scores[at + 1] for at in range(looked - 1)]
    largest = max(drops, default=0.0)
    return drops.index(largest) + 1 if largest > 0 else 0
