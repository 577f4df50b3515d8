"""Reads how passages matched a question out of spans: token by token, or by weighed terms."""

from __future__ import annotations

from dataclasses import dataclass

from core.analysis.run_view import top
from core.domain.outputs import MatchedPassage, Rerank, Search
from core.domain.types import RouteResult, Span


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """The matches of one passage with the tokens of a question."""

    query: tuple[str, ...]
    passage: MatchedPassage

    @property
    def drawable(self) -> bool:
        """Return whether the matrix is complete, with a column for each named token."""
        rows, columns = self.passage.cosines, len(self.passage.passage)
        return 0 < len(rows) <= len(self.query) and all(0 < len(row) == columns for row in rows)


@dataclass(frozen=True, slots=True)
class TokenStep:
    """A step that matched token by token, with the passages it came to first."""

    span: Span
    model: str
    hits: tuple[TokenMatch, ...]


def token_matches(result: RouteResult) -> list[TokenStep]:
    """Return the steps of a route that recorded token matches."""
    found = []
    for span in top(result):
        output = span.output
        if isinstance(output, Search | Rerank) and output.tokens and output.tokens.hits:
            model = output.model if isinstance(output, Search) else output.reranker
            query = output.tokens.query
            found.append(TokenStep(span, model, tuple(TokenMatch(query, hit) for hit in output.tokens.hits)))
    return found


def expansions(result: RouteResult) -> list[tuple[Span, Search]]:
    """Return the steps of a route that searched with terms of a model's choice."""
    return [
        (span, span.output)
        for span in top(result)
        if isinstance(span.output, Search) and span.output.expansion
    ]
