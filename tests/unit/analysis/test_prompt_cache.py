"""What a prompt cache served is counted over the calls that were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.analysis.token_usage import prompt_cache
from core.domain.types import Query, RouteResult, Run, Span, Tokens


def run(*spans: Span) -> Run:
    results = (RouteResult("a", "A", "ok", 1.0, spans=spans),)
    return Run("r", "2026-11-23T00:00:00Z", Query("q"), "c", "f", {}, results)


CALL = Span(1, None, "ask", "LLM", 0.0, 1.0, tokens=Tokens(200, 5, 50))


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ((), ""),
        ((CALL, replace(CALL, id=2, tokens=Tokens(100, 1, 0))), "50 of 300 prompt tokens (17%)"),
        (
            (CALL, replace(CALL, id=2, shared_with="b#3"), replace(CALL, id=3, cached="cache")),
            "50 of 200 prompt tokens (25%)",
        ),
        ((replace(CALL, tokens=None),), ""),
        ((replace(CALL, tokens=Tokens(100, 1, 0)),), ""),
    ],
)
def test_only_what_was_sent_counts(spans: tuple[Span, ...], said: str) -> None:
    found = prompt_cache(run(*spans))
    assert found.startswith(f"Prompt cache: {said} were") if said else found == ""
