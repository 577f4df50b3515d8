"""A model's reasoning before its reply, folded."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from core.analysis.run_view import recorded
from core.domain.outputs import Reply
from core.domain.types import Span
from ui.app.markup import fragment

MAX_CHARACTERS = 20_000  # characters that are shown


def thoughts(spans: Iterable[Span]) -> Markup:
    """Return a folded part for each reply among `spans` that has reasoning."""
    folded = []
    for one in recorded(spans, Reply):
        if text := one.output.reasoning:
            count = one.span.tokens.reasoning if one.span.tokens else 0
            more = f"… ({len(text):,} characters in total)" if len(text) > MAX_CHARACTERS else ""
            folded.append((count, text[:MAX_CHARACTERS], more))
    return fragment("citations.thoughts", folded)
