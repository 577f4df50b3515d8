"""The entities of a text, found by rules: identifiers, capitalised names, pairs of words, rare words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from core.backends.languages import stop_words
from core.backends.terms import Analyzer
from core.corpus.sections import sentences

Kind = Literal["identifier", "name", "pair", "word"]
STRONG: tuple[Kind, ...] = ("identifier", "name")  # an entity wherever it stands, in one passage too

# asyncio.gather, max_size, camelCase, ISO-8601, B2: what people do not write by chance.
IDENTIFIER = re.compile(
    r"[^\W\d]\w*(?:\.[^\W\d]\w*)+|\w*[^\W_]_+\w+|\b[A-Z]?[a-z]+[A-Z]\w*|[^\W\d_]+-?\d[\w-]*\w|[^\W\d_]\d\b"
)
WORD = re.compile(r"\w+(?:['’-]\w+)*")
JOINING = frozenset(
    ("of", "the", "de", "del", "la", "le", "du", "des", "von", "van", "der", "den", "di", "da")
)
LONGEST = 6  # words of a name
SHORTEST = 4  # letters of a word that is an entity by being rare, where it is ASCII


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as it stands in a text, and the `key` under which its other spellings are found."""

    key: str
    shown: str
    kind: Kind


def in_sentences(text: str, analyzer: Analyzer) -> Iterator[list[Entity]]:
    """Yield the entities of each sentence in order, repeats included.

    Identifiers are dotted, have an underscore, are in camel case, or mix letters with digits. A name is a run
    of up to LONGEST capitalised words, with "of", "the" and the like between them; a sentence's first word
    alone counts only with two capitals. A pair is two neighbouring words except stop words (noun phrases, and
    some others). A word is any other word except stop words. Pairs and words become entities if few passages
    have them.
    """
    stops = stop_words(analyzer.usual)
    for start, end in sentences(text, 0, len(text)):
        yield _entities(text[start:end], analyzer, stops)


def _entities(text: str, analyzer: Analyzer, stops: frozenset[str]) -> list[Entity]:
    found = [(m.start(), Entity(m[0].casefold(), m[0], "identifier")) for m in IDENTIFIER.finditer(text)]
    found += [(at, Entity(key(name, analyzer), name, "name")) for at, name in _names(text, stops)]
    before: tuple[int, str, str] | None = None
    for start, stop, word, terms in analyzer.places(text):
        if word in stops:
            continue
        if before and before[0] < start and text[before[0] : start] in (" ", "-"):
            found.append((start, Entity(f"{before[2]} {terms[0]}", f"{before[1]} {word}", "pair")))
        if (len(word) >= SHORTEST or not word.isascii()) and not word.isdecimal():
            found.append((start, Entity(terms[0], word, "word")))
        before = (stop, word, terms[0])
    return [entity for _, entity in sorted(found, key=lambda one: one[0])]


def _names(text: str, stops: frozenset[str]) -> Iterator[tuple[int, str]]:
    run: list[re.Match[str]] = []
    first = True

    def ended() -> Iterator[tuple[int, str]]:
        while run and run[-1][0] in JOINING:
            run.pop()
        while run and run[0][0].lower() in stops and (len(run[0][0]) == 1 or not run[0][0].isupper()):
            run.pop(0)  # "The", "In": a stop word at the beginning
        if run and not (opening and len(run) == 1 and not any(map(str.isupper, run[0][0][1:]))):
            yield run[0].start(), text[run[0].start() : run[-1].end()]
        run.clear()

    opening = False
    for match in WORD.finditer(text):
        capital = match[0][0].isupper()
        apart = bool(run) and text[run[-1].end() : match.start()] != " "
        if run and (apart or len(run) >= LONGEST or not (capital or match[0] in JOINING)):
            yield from ended()
        if capital or run:
            if not run:
                opening = first
            run.append(match)
        first = False
    yield from ended()


def key(name: str, analyzer: Analyzer) -> str:
    """Return the terms of a name, so that its plural is equal, or the name itself if a word has no term."""
    terms = analyzer.terms(name)
    return " ".join(terms if len(terms) == len(WORD.findall(name)) else name.casefold().split())
