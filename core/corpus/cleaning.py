"""Make words that were broken at line ends whole again."""

from __future__ import annotations

import json
import re
from functools import cache

from core.backends.minilm import FOLDER

BROKEN_LINE = "\ue0ad"  # private use: a hyphen at a line end, before it is decided whether it stays
MOST_WORDS = 2_000_000  # words of a corpus that are remembered
_BROKEN = re.compile(rf"([^\W\d_]+){BROKEN_LINE}([^\W\d_]+)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class Words:
    """The words of a corpus as far as it has been read, and of a dictionary."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def joined(self, text: str) -> str:
        """Learn the words of a document, and decide on each of its hyphens at a line end: it stays if the
        word is known with it, goes if the joined word is known, and else stays.
        """
        if len(self._seen) < MOST_WORDS:
            self._seen.update(_WORD.findall(text.lower()))

        def decided(match: re.Match[str]) -> str:
            whole, joined = f"{match[1]}-{match[2]}", match[1] + match[2]
            known = joined.lower() in self._seen or joined.lower() in _dictionary()
            return joined if known and whole.lower() not in self._seen else whole

        return _BROKEN.sub(decided, text).replace(BROKEN_LINE, "-") if BROKEN_LINE in text else text


@cache
def _dictionary() -> frozenset[str]:
    """Return the whole words in the vocabulary of the default embedding model."""
    words = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return frozenset(word for word in words if len(word) > 3 and word.isalpha())
