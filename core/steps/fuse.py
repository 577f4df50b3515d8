"""Fusion of rankings: pure functions, and the steps that trace them."""

from __future__ import annotations

from collections.abc import Sequence

from core.domain.errors import BadInput
from core.domain.fusion import Norm, linear, rrf
from core.domain.outputs import Fusion
from core.domain.types import Hit, Passage, Ranking
from core.steps.base import StepBase
from core.steps.retrieve import POOL
from core.steps.step import step


def _in_turn(lists: Sequence[Ranking]) -> Ranking:
    merged = {hit.passage.id: hit.passage for ranking in lists for hit in ranking}
    return tuple(Hit(passage, 1 / rank) for rank, passage in enumerate(merged.values(), 1))


def ranks(lists: Sequence[Ranking]) -> dict[str, list[int | None]]:
    """Return each passage's rank in each list, from 1; None if absent. Of repeats the best counts."""
    found: dict[str, list[int | None]] = {}
    for index, ranking in enumerate(lists):
        for rank, id in enumerate(dict.fromkeys(hit.passage.id for hit in ranking), 1):
            found.setdefault(id, [None] * len(lists))[index] = rank
    return found


def union(lists: Sequence[Ranking]) -> Ranking:
    """All passages of all lists, ordered by best rank, then by the number of lists with it, then by id.

    The score tells just that order: 1 / (best rank + the share of lists without it), so 1.0 is a passage that
    leads some list and is in all. As the share is below 1, it never outweighs a rank.
    Source: LangChain's MultiQueryRetriever takes the unique union of the variants' results and leaves its
    order open; this order does not depend on that of the variants.
    """
    scores = {}
    for id, places in ranks(lists).items():
        known = [rank for rank in places if rank is not None]
        scores[id] = len(lists) / (len(lists) * min(known) + places.count(None))
    return _ranked(lists, scores)


def _ranked(lists: Sequence[Ranking], scores: dict[str, float]) -> Ranking:
    passages: dict[str, Passage] = {hit.passage.id: hit.passage for one in lists for hit in one}
    return tuple(Hit(passages[id], scores[id]) for id in sorted(scores, key=lambda id: (-scores[id], id)))


class Fuse(StepBase):
    """Fusion as traced steps."""

    @step("CHAIN", "fuse by reciprocal rank", returns=Ranking)
    def rrf(
        self, lists: tuple[Ranking, ...], k: float = 60, weights: tuple[float, ...] | None = None
    ) -> Ranking:
        """See `rrf`."""
        self.span.output = Fusion("rrf")
        return rrf(lists, k=k, weights=weights)

    @step("CHAIN", "fuse by normalised scores", returns=Ranking)
    def linear(
        self, lists: tuple[Ranking, ...], weights: tuple[float, ...] | None = None, norm: Norm = "min_max"
    ) -> Ranking:
        """See `linear`."""
        self.span.output = Fusion("linear")
        return linear(lists, weights=weights, norm=norm)

    @step("CHAIN", "append the rest", returns=Ranking)
    def append(self, first: Ranking, rest: Ranking) -> Ranking:
        """`first`, then what `rest` has besides; scores become 1 / rank, because the two lists' do not
        compare.
        """
        self.span.output = Fusion("append")
        return _in_turn((first, rest))

    @step("CHAIN", "put lists one behind another", returns=Ranking)
    def concat(self, *lists: Ranking) -> Ranking:
        """`append` for any number of lists: what `+` does, but the trace knows the lists."""
        self.span.output = Fusion("concat")
        return _in_turn(lists)

    @step("CHAIN", "unite the lists", returns=Ranking)
    def union(self, lists: tuple[Ranking, ...], texts: tuple[str, ...]) -> Ranking:
        """Return the first 2 * POOL of `union`. The span records, per text, the passages that only it found
        ("only").
        """
        self._one_text_a_list(lists, texts)
        only: dict[str, list[str]] = {text: [] for text in texts}
        for id, places in ranks(lists).items():
            having = [text for text, rank in zip(texts, places, strict=True) if rank is not None]
            if len(having) == 1:
                only[having[0]].append(id)
        self.span.output = Fusion("union", only={text: tuple(ids) for text, ids in only.items()})
        return union(lists)[: 2 * POOL]

    def _one_text_a_list(self, lists: tuple[Ranking, ...], texts: tuple[str, ...]) -> None:
        if len(texts) != len(lists):
            raise BadInput(f"{len(texts)} texts for {len(lists)} lists; give one text per list")
