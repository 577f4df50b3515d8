"""A model's reasoning before its reply, folded."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from core.analysis.run_view import recorded
from core.domain.outputs import Reply
from core.domain.types import Span
from ui.app.markup import EMPTY, join, tag

MAX_CHARACTERS = 20_000  # characters that are shown


def thoughts(spans: Iterable[Span]) -> Markup:
    """Return a folded part for each reply among `spans` that has reasoning."""
    return join([_folded(one.span, one.output) for one in recorded(spans, Reply) if one.output.reasoning])


def _folded(span: Span, reply: Reply) -> Markup:
    count = span.tokens.reasoning if span.tokens else 0
    text = reply.reasoning
    more = f"… ({len(text):,} characters in total)" if len(text) > MAX_CHARACTERS else ""
    return tag(
        "details",
        tag("summary", "Reasoning", f", {count:,} tokens" if count else EMPTY, css="dim"),
        tag("div", text[:MAX_CHARACTERS], more, css="full", dir="auto"),
        css="rs-thought",
    )
