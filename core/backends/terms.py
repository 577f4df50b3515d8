"""From text to search terms: words, without stop words, stemmed; n-grams where words are not spaced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from core.backends import languages
from core.backends.languages import HAN, HANGUL, KANA, THAI
from core.domain.errors import BadInput

RULES = 2  # a change of the rules here makes other terms, so every index anew
WORD = re.compile(r"\b\w\w+\b")
_RUN = re.compile(f"(?P<cjk>[{HAN}{KANA}]+)|(?P<hangul>[{HANGUL}]+)|(?P<thai>[{THAI}]+)")
_HAN = re.compile(f"[{HAN}]")
# Vowel signs are no letters to Python: by WORD a word of these languages would be cut at each.
_MARKED = re.compile(
    r"(?:[^\W_]|[\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0b82\u0bbe-\u0bcd]){2,}"
)
_RUNS = re.compile(r"[^\W\d_]+|\d+")  # letters, and digits: an identifier is split between them
_CASE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")  # and where its case changes
_WITH_MARKS = ("arabic", "hindi", "nepali", "persian", "tamil")


@dataclass(frozen=True)
class Analyzer:
    """The conversion of a corpus' texts to terms, stored with the index so that questions are split alike.

    A corpus of several languages has `parts`, one for each, named "english+german/italian": a passage is
    split by its own language, and by those before the slash if its language is not clear or is not among
    them. The terms of a passage depend on its text and on the languages before the slash alone. A question
    (see `questions`) is split by its own language and those before the slash, or by all.

    Runs of letters of an unspaced script become pairs of letters (three for Thai) in every language, and each
    Han character is also a term by itself. Source of the pairs: Nie, Gao, Zhang & Zhou 2000, "On the Use of
    Words and N-grams for Chinese Information Retrieval", doi:10.1145/355214.355235; Lucene's CJKAnalyzer
    produces the same.
    """

    language: str  # a Snowball stemmer's name, "none" for unchanged words, or one of languages.UNSPACED
    stop_words: tuple[str, ...] = ()
    parts: tuple[Analyzer, ...] = ()
    identifiers: bool = False  # the parts of getUserById, user_id and X9000 are terms, too
    asking: bool = False  # whether it cuts questions

    @cached_property
    def questions(self) -> Analyzer:
        """The analyzer of questions over the same corpus; itself if it has one language."""
        return replace(self, asking=True) if self.parts else self

    def terms(self, text: str) -> list[str]:
        """Return the terms of `text` in order, repeats included."""
        by = self._of(text)
        if len(by) == 1 and by[0].plain(text):
            return by[0]._plain_terms(text)
        return [term for _, _, _, terms in self._places(text, by) for term in terms]

    def _plain_terms(self, text: str) -> list[str]:
        stem, stops, found = self._stem, self._stops, list[str]()
        if not self.identifiers:
            return [stem(word) for word in WORD.findall(text.lower()) if word not in stops]
        for word in WORD.findall(text):
            if (low := word.lower()) not in stops:
                found.append(stem(low))
            found += self._parts_of(word)
        return found

    def words(self, text: str) -> Iterator[tuple[str, str]]:
        """Each word that counts, in lower case, with its term; a word may have several."""
        for _, _, word, terms in self.places(text):
            for term in terms:
                yield word, term

    def places(self, text: str) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
        """Return the place of each counted word in `text` (start, stop), the word, and its terms. Unspaced
        text is split into overlapping n-grams.
        """
        return self._places(text, self._of(text))

    def plain(self, text: str) -> bool:
        """Return True if the words of `text` are those of WORD and each has one term."""
        return not (self.parts or self.language in _WITH_MARKS) and not _unspaced(text)

    def _places(self, text: str, by: tuple[Analyzer, ...]) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
        if not _unspaced(text):
            yield from self._spaced(text, 0, by)
            return
        at, lower = 0, same_length_lower(text)
        for run in _RUN.finditer(lower):
            yield from self._spaced(text[at : run.start()], at, by)
            for start, gram in _grams(run[0], run.lastgroup == "thai"):
                yield (
                    run.start() + start,
                    run.start() + start + len(gram),
                    gram,
                    (unicodedata.normalize("NFKC", gram),),
                )
            at = run.end()
        yield from self._spaced(text[at:], at, by)

    def _spaced(
        self, text: str, before: int, by: tuple[Analyzer, ...]
    ) -> Iterator[tuple[int, int, str, tuple[str, ...]]]:
        pattern = _MARKED if any(one.language in _WITH_MARKS for one in by) else WORD
        for match in pattern.finditer(same_length_lower(text)):
            word, written = match[0], text[match.start() : match.end()]
            whole = [one._stem(word) for one in by if word not in one._stops]
            terms = tuple(dict.fromkeys([*whole, *(part for one in by for part in one._parts_of(written))]))
            if terms:
                yield before + match.start(), before + match.end(), word, terms

    def _of(self, text: str) -> tuple[Analyzer, ...]:
        """Return the parts that split `text`."""
        if not self.parts:
            return (self,)
        if not self.asking:
            own = languages.language(text)
            usual = tuple(part for part in self.parts if part.language in self.usual)
            return next(((part,) for part in self.parts if part.language == own), usual)
        clear = languages.language(text) or languages.among(text, self.languages)
        return self._asked.get(clear or "", self.parts)

    @cached_property
    def _asked(self) -> dict[str, tuple[Analyzer, ...]]:
        """By the language of a question, the parts that cut it; its stop words count in none of them."""
        usual = [part for part in self.parts if part.language in self.usual]
        found: dict[str, tuple[Analyzer, ...]] = {part.language: (part,) for part in usual}
        for own in self.parts:
            if own.language not in self.usual:
                others = (replace(part, stop_words=part.stop_words + own.stop_words) for part in usual)
                found[own.language] = (own, *others)
        return found

    @property
    def usual(self) -> tuple[str, ...]:
        """The languages that a passage without a clear language is cut by."""
        return tuple(self.language.partition("/")[0].split("+"))

    @property
    def languages(self) -> tuple[str, ...]:
        """The language, or those of its parts."""
        return tuple(part.language for part in self.parts) or (self.language,)

    def record(self) -> dict[str, Any]:
        """Return what is stored and fingerprinted."""
        parts = [part.record() for part in self.parts]
        kept = {"language": self.language, "stop_words": self.stop_words, "parts": parts, "rules": RULES}
        return {**kept, "identifiers": True} if self.identifiers else kept

    def _parts_of(self, word: str) -> tuple[str, ...]:
        """Return the terms of an identifier's parts (getUserById, user_id, X9000); () for a plain word."""
        plain = word.isalpha() and word[1:] == word[1:].lower()
        return () if plain or not self.identifiers else self._split(word)

    @cached_property
    def _split(self) -> Callable[[str], tuple[str, ...]]:
        def split(word: str) -> tuple[str, ...]:
            runs = [
                part
                for run in _RUNS.findall(word)
                for part in (_CASE.findall(run) if run.isascii() else ()) or (run,)
            ]
            parts = [part.lower() for part in runs if len(part) > 1] if len(runs) > 1 else []
            return tuple(self._stem(part) for part in parts if part not in self._stops)

        return lru_cache(100_000)(split)

    @cached_property
    def _stops(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    @cached_property
    def _stem(self) -> Any:
        if self.language == "none" or self.language in languages.UNSPACED:
            return str
        import Stemmer

        stemmer = Stemmer.Stemmer(self.language)
        return lru_cache(100_000)(stemmer.stemWord)


def from_record(stored: Mapping[str, Any]) -> Analyzer:
    """Invert `record`."""
    parts = tuple(from_record(part) for part in stored.get("parts", ()))
    identifiers = stored.get("identifiers") is True
    return Analyzer(stored["language"], tuple(stored["stop_words"]), parts, identifiers)


def analyzer(language: str, *, identifiers: bool = False) -> Analyzer:
    """Return the analyzer for `language`, with bm25s's stop words if it has them; several are joined by "+",
    and those of single passages follow a "/" (see `Analyzer`). Raises BadInput for others.
    """
    import Stemmer

    if "+" in language or "/" in language:
        if language.count("/") > 1:
            raise BadInput(
                f"language {language!r}: give at most one /, before the languages of other passages"
            )
        parts = tuple(
            analyzer(name, identifiers=identifiers) for name in dict.fromkeys(re.split(r"[+/]", language))
        )
        return Analyzer(language, (), parts, identifiers)
    if language == "none" or language in languages.UNSPACED:
        return Analyzer(language, identifiers=identifiers)
    known = Stemmer.algorithms()
    if language not in known:
        allowed = ", ".join(sorted([*known, *languages.UNSPACED]))
        raise BadInput(f"language {language!r}: give auto, none, several joined by +, or one of {allowed}")
    import bm25s.stopwords as lists

    name = "STOPWORDS_EN" if language == "english" else f"STOPWORDS_{language.upper()}"
    return Analyzer(language, tuple(sorted(set(getattr(lists, name, ())))), (), identifiers)


def same_length_lower(text: str) -> str:
    """`text` in lower case, letter by letter: a letter that gets longer stays as it is."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _unspaced(text: str) -> bool:
    """Return True if `text` contains letters of an unspaced script."""
    return not text.isascii() and _RUN.search(text) is not None


def _grams(run: str, thai: bool) -> Iterator[tuple[int, str]]:
    """Yield the n-grams of a run of letters with their places; a shorter run is one n-gram."""
    size = 3 if thai else 2
    if len(run) < size:
        yield 0, run
        return
    for at in range(len(run)):
        if not thai and _HAN.match(run[at]):
            yield at, run[at]
        if at + size <= len(run):
            yield at, run[at : at + size]
