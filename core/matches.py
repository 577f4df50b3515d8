"""Reads how passages matched a question out of stored spans: token by token, or by weighed terms.

A stored run may come from anywhere: what is not as a step would have written it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.reading import top
from core.types import RouteResult, Span

Terms = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """How one passage matched: for each of `query` the passage's most similar token and their cosine.

    `cosines` has a row for each of the first tokens of the question and a column for each of `passage`, the
    first of `tokens` in all; both are empty where the span kept only the best.
    """

    id: str
    query: tuple[str, ...]
    best: Terms
    passage: tuple[str, ...] = ()
    tokens: int = 0
    cosines: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenMatches:
    """A step that matched token by token, with the passages it came to first."""

    span: Span
    model: str
    hits: tuple[TokenMatch, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A step that searched with weighed terms: the heaviest of `terms` in all, and what each adds to hits."""

    span: Span
    model: str
    weights: Terms
    terms: int
    matched: Mapping[str, Terms]


def token_matches(result: RouteResult) -> list[TokenMatches]:
    """The steps of a route that tell how tokens matched."""
    found = []
    for span in top(result):
        match = span.inputs.get("match")
        if isinstance(match, Mapping):
            query = _words(match.get("query"))
            given = [hit for hit in _list(match.get("hits")) if isinstance(hit, Mapping)]
            hits = tuple(_match(query, hit) for hit in given)
            if query and hits:
                found.append(TokenMatches(span, str(span.inputs.get("model", "")), hits))
    return found


def expansions(result: RouteResult) -> list[Expansion]:
    """The steps of a route that searched with terms of a model's choice."""
    found = []
    for span in top(result):
        weights = _terms(span.inputs.get("expansion"))
        if weights:
            matched, count = span.inputs.get("matched"), span.inputs.get("terms")
            each = matched.items() if isinstance(matched, Mapping) else ()
            found.append(
                Expansion(
                    span,
                    str(span.inputs.get("model", "")),
                    weights,
                    count if isinstance(count, int) else len(weights),
                    {str(id): _terms(terms) for id, terms in each},
                )
            )
    return found


def _match(query: tuple[str, ...], hit: Mapping[str, Any]) -> TokenMatch:
    id, best = str(hit.get("id")), _terms(hit.get("best"))[: len(query)]
    passage = _words(hit.get("passage"))
    rows = tuple(tuple(map(_number, _list(row))) for row in _list(hit.get("cosines")))[: len(query)]
    if not passage or not rows or any(len(row) != len(passage) for row in rows):
        return TokenMatch(id, query, best)
    count = hit.get("tokens")
    return TokenMatch(id, query, best, passage, count if isinstance(count, int) else len(passage), rows)


def _terms(value: Any) -> Terms:
    pairs = [pair for pair in _list(value) if len(_list(pair)) == 2]
    return tuple((str(pair[0]), _number(pair[1])) for pair in pairs)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(str, _list(value)))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _number(value: Any) -> float:
    try:
        number = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:  # JSON knows no largest whole number
        return 0.0
    return number if math.isfinite(number) else 0.0
