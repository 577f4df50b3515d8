"""Personalised PageRank over a graph with weighted edges, by power iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# At damping .5 the change halves with each iteration, at .9 it takes about 150 of them for TOLERANCE.
MAX_ITERATIONS = 200
TOLERANCE = 1e-8  # sum of absolute changes, from which on the walk has ended


@dataclass(frozen=True, slots=True)
class GraphWalk:
    """The share of time that the walk spends at each node, shape (n,), adding up to 1; `iterations` it took,
    and the sum of absolute changes in the last.
    """

    scores: NDArray[np.float64]
    iterations: int
    change: float


class Graph:
    """An undirected graph, ready to be walked. Safe in threads."""

    def __init__(self, size: int, ends: NDArray[Any], weights: NDArray[Any]) -> None:
        """Build an undirected graph: `ends`, shape (m, 2), are nodes from 0 to `size` - 1 tied by an edge of
        positive weight, shape (m,); several edges of one pair add up.
        """
        from scipy.sparse import csr_array

        a, b = np.concatenate([ends, ends[:, ::-1]]).reshape(-1, 2).T
        both = np.concatenate([weights, weights]).astype(np.float64)
        self.size = size
        self.edges: csr_array = csr_array((both, (a, b)), shape=(size, size))
        self.edges.sum_duplicates()
        degree = np.asarray(self.edges.sum(axis=0), np.float64).reshape(-1)
        self._alone = degree == 0
        self._share = np.divide(1.0, degree, out=np.zeros(size), where=~self._alone)

    def walk(
        self, restart: NDArray[np.float64], damping: float = 0.5, tolerance: float = TOLERANCE
    ) -> GraphWalk:
        """Follow an edge, by its weight, with probability `damping`; else, or from a node without edges,
        restart at a node by `restart`, shape (n,), not negative and not all 0.

        Source: Page et al. 1999, "The PageRank Citation Ranking"; Haveliwala 2002, "Topic-Sensitive
        PageRank".
        """
        begin = restart / restart.sum()
        scores, change, done = begin, np.inf, 0
        while change > tolerance and done < MAX_ITERATIONS:
            stuck = scores[self._alone].sum()
            found = damping * (self.edges @ (scores * self._share) + stuck * begin) + (1 - damping) * begin
            change, scores, done = float(np.abs(found - scores).sum()), found, done + 1
        return GraphWalk(scores, done, change)
