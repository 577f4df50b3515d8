"""The checks of a written question before it is accepted: pure functions of texts, terms and rankings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from core.corpus.corpus import Corpus
from core.domain.types import Ranking

LEAST, MOST = 4, 40  # words of a question
ALIKE = 0.8  # Jaccard of the terms of two questions from which they are the same question
COPIED = 0.8  # share of a question's words that stand in the passage in a row
SHARED = 0.34  # share of a question's terms that its passage has too, at most, for a vocabulary mismatch
_POINTS = re.compile(r"\b(?:the|this|these|that) (?:passage|document|text|article|excerpt|section)s?\b", re.I)
_WORDS = re.compile(r"\w+")


def form(question: str, passages: Sequence[str]) -> str:
    """Return the fault of a question's form, or "" if it has none."""
    count = len(_WORDS.findall(question))
    if not question.rstrip().endswith(("?", "？", "؟")):
        return "not a question"
    if not LEAST <= count <= MOST and question.isascii():
        return f"not {LEAST} to {MOST} words long"
    if _POINTS.search(question):
        return "points at the passage"
    if any(copied(question, passage) for passage in passages):
        return "copies its passage"
    if any(unlike(question, passage) for passage in passages):
        return "in another language than its passage"
    return ""


def copied(question: str, passage: str) -> bool:
    """Return whether most of a question's words occur consecutively in the passage."""
    asked, said = _WORDS.findall(question.casefold()), _WORDS.findall(passage.casefold())
    size = max(LEAST, round(COPIED * len(asked)))
    runs = {tuple(said[at : at + size]) for at in range(len(said) - size + 1)}
    return any(tuple(asked[at : at + size]) in runs for at in range(len(asked) - size + 1))


def unlike(question: str, passage: str) -> bool:
    """Return whether a question is in another script than its passage, or by its stop words in another
    language.
    """
    if _script(question) != _script(passage):
        return True
    first, second = _language(question), _language(passage)
    return first is not None and second is not None and first != second


def shared(question: str, passages: Sequence[str], corpus: Corpus) -> float:
    """Return the share of a question's terms that its passages have too, 0 to 1."""
    asked, there = terms(question, corpus), set().union(*(terms(text, corpus) for text in passages))
    return len(asked & there) / len(asked) if asked else 1.0


def terms(text: str, corpus: Corpus) -> set[str]:
    """Return the terms of a text as BM25 sees them."""
    return {term for term, _ in corpus.terms(text)}


def same(asked: Collection[str], before: Mapping[str, Collection[str]]) -> str:
    """Return the id of the earlier question that is the same but for a few words, or "" for none; both by
    terms.
    """
    for id, other in before.items():
        union = len(set(asked) | set(other))
        if union and len(set(asked) & set(other)) / union >= ALIKE:
            return id
    return ""


def rank(ranking: Ranking, ids: Collection[str]) -> int | None:
    """Return the rank, from 1, of the first hit among `ids`, or None if it does not exist."""
    return next((at for at, hit in enumerate(ranking, 1) if hit.passage.id in ids), None)


def _script(text: str) -> str:
    """Return the script that most letters are of, by the first word of their Unicode names; Kana and Han are
    one.
    """
    counted = Counter(_named(char) for char in text[:2000] if char.isalpha())
    return counted.most_common(1)[0][0] if counted else ""


@cache
def _named(char: str) -> str:
    first = unicodedata.name(char, "").split(" ")[0]
    return "CJK" if first in ("HIRAGANA", "KATAKANA") else first


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    import Stemmer

    from core.backends.terms import analyzer

    found = {name: frozenset(analyzer(name).stop_words) for name in Stemmer.algorithms()}
    return {name: words for name, words in found.items() if words}


def _language(text: str) -> str | None:
    """Return the language with the most stop words in a text, if it leads clearly; else None."""
    words = _WORDS.findall(text.casefold())[:400]
    counted = Counter({name: sum(word in stops for word in words) for name, stops in _stop_words().items()})
    (best, most), (_, second) = counted.most_common(2)
    return best if most >= 3 and most >= 1.5 * second else None
