"""Answers with checked citations: each marker shows its passage, or that no passage has its number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from core.analysis.answers import Checked, checked, decisions, forced
from core.analysis.run_view import below, recorded
from core.domain.outputs import Reply, Written
from core.domain.types import RouteResult, Run, Span
from ui.app.markup import EMPTY, fragment
from ui.app.names import title_of

MAX_REASONING = 20_000  # characters that are shown
_MARKER = re.compile(r"(\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\])")


def thoughts(spans: Iterable[Span]) -> Markup:
    """Return a folded part for each reply among `spans` that has reasoning before it."""
    folded = []
    for one in recorded(spans, Reply):
        if text := one.output.reasoning:
            count = one.span.tokens.reasoning if one.span.tokens else 0
            more = f"… ({len(text):,} characters in total)" if len(text) > MAX_REASONING else ""
            folded.append((count, text[:MAX_REASONING], more))
    return fragment("citations.thoughts", folded)


def answers(run: Run) -> Markup:
    """Return all routes' answers side by side, or a hint if no route wrote one."""
    return fragment(
        "citations.cards", [_card(run, one) for one in run.results if one.answer_status != "not asked"]
    )


def note(run: Run, result: RouteResult) -> Markup:
    """Return one route's answer for display above its hits."""
    found = checked(result)
    return fragment("citations.note", found, result.answer_error, said(run, found) if found else EMPTY)


def said(run: Run, found: Checked) -> Markup:
    """Return the answer's text.

    A marker opens its passage; an invalid one is marked, and sentences without a citation are underlined.
    """
    bare = found.written.uncited
    pieces = [(piece.strip() in bare, _parts(run, found, piece)) for piece in _pieces(found.written)]
    return fragment("citations.said", pieces)


def _pieces(found: Written) -> list[str]:
    """Split the text so that each sentence without a citation is one piece."""
    pieces, rest = [], found.text
    for sentence in found.uncited:
        before, hit, after = rest.partition(sentence)
        if hit:
            pieces += [before, sentence]
            rest = after
    return [piece for piece in (*pieces, rest) if piece]


def _parts(run: Run, found: Checked, piece: str) -> list[tuple[Any, ...]]:
    """Split a piece into texts and citations: text, number, its passage with its name, and the cited id."""
    parts: list[tuple[Any, ...]] = []
    for part in _MARKER.split(piece):
        if not _MARKER.fullmatch(part):
            parts.append((part, None, None, "", ""))
            continue
        for number in map(int, re.findall(r"\d+", part)):
            id = found.cited.get(number, "")
            parts.append(("", number, run.passages.get(id), title_of(run, id), id))
    return parts


def _card(run: Run, result: RouteResult) -> tuple[Any, ...]:
    """Return what a card shows: the answer, why it abstains, its sources, and the model's reasoning."""
    if (found := checked(result)) is None:
        return result, None, EMPTY, "", (), EMPTY
    why = [forced(one.span) or one.output.why for one in reversed(decisions(result)) if one.output.why]
    sources = []
    for number, id in sorted(found.cited.items()):
        passage = run.passages.get(id)
        sources.append((number, title_of(run, id), passage.text if passage else id))
    spans = [one for span in result.spans if span.id == result.answer_span for one in below(result, span)]
    last = why[0] if why and found.written.abstained else ""
    return result, found, said(run, found), last, sources, thoughts(spans)
