"""Texts as every search reads them."""

from __future__ import annotations

import re

# A full stop that ends no sentence, at the end of what is searched.
ABBREVIATED = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|approx|ca|cf|Dr|etc|Inc|Ltd|Mr|Mrs|Ms|No|St|vs))\.$")

TOKEN = re.compile(r"\w+|[^\w\s]")  # a word or a mark: the same for every model, some 1.3 of theirs


def tokens(text: str) -> int:
    """Count the words and marks of a text, the unit of token budgets here."""
    return sum(1 for _ in TOKEN.finditer(text))


def searchable(title: str, text: str) -> str:
    """Return the searched text of a passage: its document's title and its text."""
    return f"{title} {text}".strip()
