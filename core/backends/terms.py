"""From text to search terms: words, without stop words, stemmed; n-grams where words are not spaced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from core.backends import languages
from core.backends.languages import HAN, HANGUL, KANA, THAI
from core.domain.errors import BadInput

WORD = re.compile(r"\b\w\w+\b")
_RUN = re.compile(f"(?P<cjk>[{HAN}{KANA}]+)|(?P<hangul>[{HANGUL}]+)|(?P<thai>[{THAI}]+)")
_HAN = re.compile(f"[{HAN}]")
# Vowel signs are no letters to Python: by WORD a word of these languages would be cut at each.
_MARKED = re.compile(
    r"(?:[^\W_]|[\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0b82\u0bbe-\u0bcd]){2,}"
)
_WITH_MARKS = ("arabic", "hindi", "nepali", "persian", "tamil")


@dataclass(frozen=True)
class Analyzer:
    """How a corpus' texts become terms; stored with the index, so that questions are cut in the same way.

    `language` is a Snowball stemmer's name, "none" for words as they are, or one of languages.UNSPACED: its
    runs of letters become pairs of letters (three for Thai), and each Han character also a term by itself;
    other words stay as they are. A corpus of several languages has `parts`, one for each: a text is cut by
    the language its stop words tell, or by all of them where they do not.
    Source of the pairs: Nie, Gao, Zhang & Zhou 2000, "On the Use of Words and N-grams for Chinese Information
    Retrieval", doi:10.1145/355214.355235; Lucene's CJKAnalyzer makes the same.
    """

    language: str
    stop_words: tuple[str, ...] = ()
    parts: tuple[Analyzer, ...] = ()

    def terms(self, text: str) -> list[str]:
        """The terms of `text` in order, repeats included."""
        if self.plain:
            stem, stops = self._stem, self._stops
            return [stem(word) for word in WORD.findall(text.lower()) if word not in stops]
        return [term for _, term in self.words(text)]

    def words(self, text: str) -> Iterator[tuple[str, str]]:
        """Each word that counts, in lower case, with its term; a word may have several."""
        if self.plain:
            for word in WORD.findall(text.lower()):
                if word not in self._stops:
                    yield word, self._stem(word)
            return
        for _, _, word, terms in self.places(text):
            for term in terms:
                yield word, term

    def places(self, text: str) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
        """Where each word that counts stands in `text` (start, stop), the word, and its terms. What is
        unspaced is given n-gram by n-gram; they overlap.
        """
        lower = same_length_lower(text)
        spaced = self._of(text)
        if not self._unspaced:
            yield from self._spaced(lower, 0, spaced)
            return
        at = 0
        for run in _RUN.finditer(lower):
            yield from self._spaced(lower[at : run.start()], at, spaced)
            for start, gram in _grams(run[0], run.lastgroup == "thai"):
                yield run.start() + start, run.start() + start + len(gram), gram, (_narrow(gram),)
            at = run.end()
        yield from self._spaced(lower[at:], at, spaced)

    def _spaced(
        self, text: str, before: int, by: tuple[Analyzer, ...]
    ) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
        pattern = _MARKED if any(one.language in _WITH_MARKS for one in by) else WORD
        for match in pattern.finditer(text):
            word = match[0]
            terms = tuple(dict.fromkeys(one._stem(word) for one in by if word not in one._stops))
            if terms:
                yield before + match.start(), before + match.end(), word, terms

    def _of(self, text: str) -> tuple[Analyzer, ...]:
        """The parts that cut the words of `text`: that of its language, or all."""
        spaced = [part for part in self.parts if part.language not in languages.UNSPACED]
        if len(spaced) > 1:
            clear = languages.among(text, [part.language for part in spaced])
            spaced = [part for part in spaced if part.language == clear] or spaced
        return tuple(spaced) or (self,)

    @property
    def languages(self) -> tuple[str, ...]:
        """The language, or those of its parts."""
        return tuple(part.language for part in self.parts) or (self.language,)

    def record(self) -> dict[str, Any]:
        """As it is stored and fingerprinted; without `parts` as it always was."""
        kept = {"language": self.language, "stop_words": self.stop_words}
        return {**kept, "parts": [part.record() for part in self.parts]} if self.parts else kept

    @cached_property
    def plain(self) -> bool:
        """Whether words are those of WORD and each has one term."""
        return not (self.parts or self._unspaced or self.language in _WITH_MARKS)

    @cached_property
    def _unspaced(self) -> bool:
        return any(name in languages.UNSPACED for name in self.languages)

    @cached_property
    def _stops(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    @cached_property
    def _stem(self) -> Any:
        if self.language == "none" or self._unspaced:
            return str
        import Stemmer

        stemmer = Stemmer.Stemmer(self.language)
        return lru_cache(100_000)(stemmer.stemWord)


def from_record(stored: Mapping[str, Any]) -> Analyzer:
    """The opposite of `record`."""
    parts = tuple(from_record(part) for part in stored.get("parts", ()))
    return Analyzer(stored["language"], tuple(stored["stop_words"]), parts)


def analyzer(language: str) -> Analyzer:
    """The analyzer for `language`, with bm25s's stop words where it has them; several are joined by "+".
    Raises BadInput for others.
    """
    import Stemmer

    if "+" in language:
        parts = tuple(analyzer(name) for name in dict.fromkeys(language.split("+")))
        return Analyzer(language, (), parts)
    if language == "none":
        return Analyzer(language)
    if language in languages.UNSPACED:
        return Analyzer(language)
    known = Stemmer.algorithms()
    if language not in known:
        allowed = ", ".join(sorted([*known, *languages.UNSPACED]))
        raise BadInput(f"language {language!r}: give auto, none, several joined by +, or one of {allowed}")
    import bm25s.stopwords as lists

    name = "STOPWORDS_EN" if language == "english" else f"STOPWORDS_{language.upper()}"
    return Analyzer(language, tuple(sorted(set(getattr(lists, name, ())))))


def same_length_lower(text: str) -> str:
    """`text` in lower case, letter by letter: a letter that gets longer stays as it is."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _grams(run: str, thai: bool) -> Iterator[tuple[int, str]]:
    """The n-grams of a run of letters, with their places; a run that is shorter is one."""
    size = 3 if thai else 2
    if len(run) < size:
        yield 0, run
        return
    for at in range(len(run)):
        if not thai and _HAN.match(run[at]):
            yield at, run[at]
        if at + size <= len(run):
            yield at, run[at : at + size]


def _narrow(gram: str) -> str:
    """Half-width and full-width letters as one; ASCII and most others stay as they are."""
    return unicodedata.normalize("NFKC", gram)
