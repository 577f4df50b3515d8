"""Fusion of rankings: pure functions, and the steps that trace them."""

from __future__ import annotations

from collections.abc import Sequence

from core.domain.fusion import Norm, linear, rrf
from core.domain.outputs import Fusion
from core.domain.types import Hit, Ranking
from core.steps.base import StepBase
from core.steps.step import step


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


def _in_turn(lists: Sequence[Ranking]) -> Ranking:
    merged = {hit.passage.id: hit.passage for ranking in lists for hit in ranking}
    return tuple(Hit(passage, 1 / rank) for rank, passage in enumerate(merged.values(), 1))
