"""From text to search terms: words, without stop words, stemmed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from core.domain.errors import BadInput

WORD = re.compile(r"\b\w\w+\b")


@dataclass(frozen=True)
class Analyzer:
    """How a corpus' texts become terms; stored with the index, so that questions are cut in the same way.

    `language` is a Snowball stemmer's name, or "none" for words as they are.
    """

    language: str
    stop_words: tuple[str, ...] = ()

    def terms(self, text: str) -> list[str]:
        """The terms of `text` in order, repeats included."""
        stem, stops = self._stem, self._stops
        return [stem(word) for word in WORD.findall(text.lower()) if word not in stops]

    def words(self, text: str) -> Iterator[tuple[str, str]]:
        """Each word that counts, in lower case, with its term."""
        for word in WORD.findall(text.lower()):
            if word not in self._stops:
                yield word, self._stem(word)

    @cached_property
    def _stops(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    @cached_property
    def _stem(self) -> Any:
        if self.language == "none":
            return str
        import Stemmer

        stemmer = Stemmer.Stemmer(self.language)
        return lru_cache(100_000)(stemmer.stemWord)


def analyzer(language: str) -> Analyzer:
    """The analyzer for `language`, with bm25s's stop words where it has them; raises BadInput for others."""
    import Stemmer

    if language == "none":
        return Analyzer(language)
    known = Stemmer.algorithms()
    if language not in known:
        raise BadInput(f"language {language!r}: give none or one of {', '.join(sorted(known))}")
    import bm25s.stopwords as lists

    name = "STOPWORDS_EN" if language == "english" else f"STOPWORDS_{language.upper()}"
    return Analyzer(language, tuple(sorted(set(getattr(lists, name, ())))))
