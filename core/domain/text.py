"""Texts as every search reads them."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# A full stop that ends no sentence, at the end of what is searched.
ABBREVIATED = re.compile(r"(?:\b(?:[A-Z]|e\.g|i\.e|approx|ca|cf|Dr|etc|Inc|Ltd|Mr|Mrs|Ms|No|St|vs))\.$")

_LETTERS = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xad": ""}
)
_UNUSUAL = re.compile("[\ufb00-\ufb06\xad]")
TOKEN = re.compile(r"\w+|[^\w\s]")  # a word or a mark: the same for every model, some 1.3 of theirs


def composed(text: str) -> str:
    """Return `text` in Unicode's composed form (NFC), ligatures expanded and soft hyphens removed.

    Texts, names, ids, questions and labels from outside pass through it, so that equal words are equal.
    """
    if text.isascii():
        return text
    if _UNUSUAL.search(text):
        text = text.translate(_LETTERS)
    return unicodedata.normalize("NFC", text)


def storable(text: str) -> str:
    """Return `text` composed, and as UTF-8 can hold it: half of a surrogate pair becomes U+FFFD."""
    if text.isascii():
        return text
    return composed(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))


def composed_values(value: Any) -> Any:
    """Return JSON values with every text and key composed."""
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, dict):
        return {composed_values(key): composed_values(item) for key, item in value.items()}
    return [composed_values(item) for item in value] if isinstance(value, list | tuple) else value


def tokens(text: str) -> int:
    """Count the words and marks of a text, the unit of token budgets here."""
    return sum(1 for _ in TOKEN.finditer(text))


def searchable(title: str, text: str) -> str:
    """Return the searched text of a passage: its document's title and its text."""
    return f"{title} {text}".strip()


def one_line(text: str) -> str:
    """`text` on one line, safe to print: control, format and unassigned characters become spaces."""
    return " ".join("".join(" " if unicodedata.category(c)[0] == "C" else c for c in text).split())
