"""The contributions of word search and vector search to the hits of a hybrid route."""

from __future__ import annotations

from dataclasses import dataclass

from core.domain.outputs import Search
from core.domain.types import RouteResult, Span

TOP = 10  # hits that are looked at
WORDS, VECTORS = ("BM25", "full text", "term weights"), ("vectors",)  # in the names of search steps


@dataclass(frozen=True, slots=True)
class Halves:
    """Counts of a route's first hits by the searches that found them."""

    hits: int
    words: int  # found by words alone
    vectors: int  # found by vectors alone
    both: int

    def line(self) -> str:
        """Say it in a sentence."""
        return (
            f"Of the first {self.hits} hits {self.vectors} were found by vectors alone, {self.words} by words"
            f" alone, {self.both} by both"
        )


def halves(result: RouteResult, top: int = TOP) -> Halves | None:
    """Count which searches found the first `top` hits; None if the route does not search in both ways."""
    by_words, by_vectors = _found(result, WORDS), _found(result, VECTORS)
    ids = [hit.passage.id for hit in result.hits[:top]]
    if by_words is None or by_vectors is None or not ids:
        return None
    words = sum(id in by_words and id not in by_vectors for id in ids)
    vectors = sum(id in by_vectors and id not in by_words for id in ids)
    return Halves(len(ids), words, vectors, sum(id in by_words and id in by_vectors for id in ids))


def _found(result: RouteResult, names: tuple[str, ...]) -> set[str] | None:
    """Return the passages that searches of a kind found; None if there was no such search."""
    spans = [span for span in result.spans if _is(span, names)]
    return {id for span in spans for id, _ in span.hits or ()} if spans else None


def _is(span: Span, names: tuple[str, ...]) -> bool:
    return isinstance(span.output, Search) and any(name in span.name for name in names)
