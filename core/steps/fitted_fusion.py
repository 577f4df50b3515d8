"""Fusion with weights that were fitted on labels: pure functions, and the steps that search and fuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from core.backends.base import Vector
from core.backends.fusion_weights import FEATURES, LISTS, FittedWeights, Row
from core.domain.errors import BadInput
from core.domain.fusion import min_max
from core.domain.needs import Need
from core.domain.outputs import Fusion
from core.domain.types import Hit, Ranking
from core.steps.fuse import Fuse
from core.steps.late_interaction import LateInteraction
from core.steps.retrieve import POOL, Retrieve
from core.steps.step import step

MAX_RECORDED_HITS = 10  # first hits whose shares the span keeps
KEYS = ("children", "headings", "contexts", "questions")  # lists of passages by what stands for them
Parts = Mapping[str, tuple[float, ...]]  # by passage: what each list gives to its score


def features(ranking: Ranking) -> dict[str, Row]:
    """Compute the features of each passage in a list, see FEATURES: its score scaled to 0 to 1, 1 for being
    in the list, and 1 / rank. For a repeated passage the first occurrence counts.
    """
    best: dict[str, float] = {}
    for hit in ranking:
        best.setdefault(hit.passage.id, hit.score)
    scores = min_max(best)
    return {id: (scores[id], 1.0, 1 / rank) for rank, id in enumerate(best, 1)}


def parts(lists: Sequence[Ranking], weights: Sequence[Sequence[float]], candidates: int = POOL) -> Parts:
    """Compute each list's contribution to the score of each passage among the first `candidates` of any list.

    The features are computed on the whole lists, so a score does not depend on `candidates`. Raises BadInput
    if `weights` is not of shape (lists, features).
    """
    if [len(row) for row in weights] != [len(FEATURES)] * len(lists):
        raise BadInput(
            f"weights of shape {[len(row) for row in weights]} for {len(lists)} lists; "
            f"expected {len(FEATURES)} per list"
        )
    known = [features(ranking) for ranking in lists]
    wanted = dict.fromkeys(id for one in known for id in list(one)[:candidates])
    absent = (0.0,) * len(FEATURES)
    return {
        id: tuple(
            sum(weight * value for weight, value in zip(row, one.get(id, absent), strict=True))
            for one, row in zip(known, weights, strict=True)
        )
        for id in wanted
    }


def ordered(lists: Sequence[Ranking], found: Parts) -> Ranking:
    """Sort the passages by the sum of their parts and keep the first 2 * POOL; ties break by passage id."""
    passages = {hit.passage.id: hit.passage for ranking in lists for hit in ranking}
    scores = {id: float(sum(shares)) for id, shares in found.items()}
    best = sorted(scores, key=lambda id: (-scores[id], id))[: 2 * POOL]
    return tuple(Hit(passages[id], scores[id]) for id in best)


class FuseFitted(LateInteraction, Retrieve, Fuse):
    """Searching in the ways that weights were fitted for, and adding up what they find."""

    def fitted(self, name: str = "") -> FittedWeights:
        """Return the fitted weights `name`, or the newest for "". Raises Unavailable with instructions if
        there are none.
        """
        found: FittedWeights = self.context.prepared(Need.WEIGHTS)(name)
        return found

    def found_by(self, names: Sequence[str], text: str) -> tuple[Ranking, ...]:
        """Return the list of each of `names` (see LISTS) for a question, as deep as other routes search.

        Fitting and running use the same lists. MaxSim scores the hits of BM25 and dense search.
        """
        vector = cache(lambda: self.embed(text))
        searches: dict[str, Callable[[], Ranking]] = {
            "bm25": lambda: self.sparse(text),
            "dense": lambda: self.nearest(vector()),
            "maxsim": lambda: self.maxsim(self.embed_tokens(text), (found("bm25"), found("dense")), POOL),
            "learned_sparse": lambda: self.learned_sparse(text),
            **{key: partial(self._by_key, Need[key.upper()], vector) for key in KEYS},
        }
        found = cache(lambda name: searches[name]())
        return tuple(found(name) for name in names)

    def fuse_fitted(self, lists: tuple[Ranking, ...], fitted: FittedWeights, candidates: int) -> Ranking:
        """Rank the passages among the first `candidates` of any list by their fitted score."""
        return self._fuse_fitted(
            lists,
            fitted.weights,
            candidates,
            fitted.name,
            tuple(LISTS[name] for name in fitted.lists),
            fitted.fingerprint,
        )

    @step("CHAIN", "fuse by fitted weights", returns=Ranking)
    def _fuse_fitted(
        self,
        lists: tuple[Ranking, ...],
        fitted: tuple[Row, ...],
        candidates: int,
        called: str,  # noqa: ARG002 - for the span
        of: tuple[str, ...],
        fingerprint: str,
    ) -> Ranking:
        """Rank by the sum of `parts`. The span records each list's contribution to the first hits ("shares").

        Source of weights fitted on judgements for the scores of several systems: Bartell, Cottrell & Belew
        1994, "Automatic Combination of Multiple Ranked Retrieval Systems", SIGIR.
        """
        if fingerprint != self.context.corpus.fingerprint:
            self.note("the weights were fitted for another state of the corpus; fit them again")
        found = parts(lists, fitted, candidates)
        hits = ordered(lists, found)
        shares = {
            hit.passage.id: tuple(round(s, 4) for s in found[hit.passage.id])
            for hit in hits[:MAX_RECORDED_HITS]
        }
        self.span.output = Fusion("fitted", names=of, shares=shares, features=tuple(FEATURES))
        return hits

    def _by_key(self, need: Need, vector: Callable[[], Vector]) -> Ranking:
        return self.nearest_key(need, vector())
