"""Make words that were broken at line ends whole again."""

from __future__ import annotations

import json
import re
from functools import cache

from core.backends.minilm_graph import FOLDER

BROKEN_LINE = "\ue0ad"  # private use: a hyphen at a line end, before it is decided whether it stays
MOST_WORDS = 2_000_000  # words of a corpus that are remembered
_BROKEN = re.compile(rf"([^\W\d_]+){BROKEN_LINE}([^\W\d_]+)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class Words:
    """The words of a corpus as far as it has been read, and of a dictionary."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def learn(self, text: str) -> None:
        """Remember the words of a document."""
        if len(self._seen) < MOST_WORDS:
            self._seen.update(_WORD.findall(text.lower()))

    def joined(self, text: str) -> tuple[str, int]:
        """Decide each hyphen at a line end, and count those for which no known word decides.

        The hyphen stays if the word is known with it, goes if the joined word is known, and else stays.
        """
        self.learn(text)
        open_ = 0

        def decided(match: re.Match[str]) -> str:
            nonlocal open_
            left, right = match[1], match[2]
            joined = (left + right).lower()
            if f"{left}-{right}".lower() in self._seen:
                return f"{left}-{right}"
            if joined in self._seen or joined in _dictionary():
                return left + right
            open_ += 1
            return f"{left}-{right}"

        return _BROKEN.sub(decided, text).replace(BROKEN_LINE, "-"), open_


@cache
def _dictionary() -> frozenset[str]:
    """Return the whole words in the vocabulary of the default embedding model."""
    words = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return frozenset(word for word in words if len(word) > 3 and word.isalpha())
