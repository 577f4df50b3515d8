"""What a prompt cache served is counted over the calls that were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.analysis.token_usage import in_words, prompt_cache
from core.domain.types import Query, RouteResult, Run, Span, Tokens


def run(*spans: Span) -> Run:
    results = (RouteResult("a", "A", "ok", 1.0, spans=spans),)
    return Run("r", "2026-11-23T00:00:00Z", Query("q"), "c", "f", {}, results)


CALL = Span(1, None, "ask", "LLM", 0.0, 1.0, tokens=Tokens(200, 5, 50))


@pytest.mark.parametrize(
    ("spans", "prompt", "cached"),
    [
        ((), 0, 0),
        ((CALL, replace(CALL, id=2, tokens=Tokens(100, 1, 0))), 300, 50),
        ((CALL, replace(CALL, id=2, shared_with="b#3"), replace(CALL, id=3, cached="cache")), 200, 50),
        ((replace(CALL, tokens=None),), 0, 0),
    ],
)
def test_only_what_was_sent_counts(spans: tuple[Span, ...], prompt: int, cached: int) -> None:
    found = prompt_cache(run(*spans))
    assert (found.prompt, found.cached) == (prompt, cached)
    assert found.rate == (cached / prompt if prompt else 0)
    assert bool(in_words(found)) == bool(cached)


def test_in_words() -> None:
    assert in_words(prompt_cache(run(CALL))).startswith("Prompt cache: 50 of 200 prompt tokens (25%) were")
