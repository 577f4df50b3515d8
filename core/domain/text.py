"""Texts as every search reads them."""

from __future__ import annotations


def searchable(title: str, text: str) -> str:
    """What of a passage is searched, by words and by meaning: its document's title and its text."""
    return f"{title} {text}".strip()
