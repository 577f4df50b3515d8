"""Matches passages that another pipeline returned to those of a corpus: by id, by offsets, by text."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from core.corpus.types import Document, Span
from core.domain.errors import BadInput
from core.domain.external import ForeignHit
from core.domain.once import Recent
from core.domain.relevance import unmatched_id
from core.domain.types import Passage

Rule = Literal["id", "offsets", "text", "words", "document"]
RULES: Mapping[Rule, str] = {
    "id": "by id",
    "offsets": "by document and offsets",
    "text": "by text",
    "words": "by shared words",
    "document": "by document alone",
}
LEAST = 0.8  # of the words of the shorter of two texts, where neither holds the other
HALF = 0.5  # of a span, as labels follow it; and of the words, below which an id means another passage
SHORT = 5  # different words: what has fewer is found in many a text by accident
KEPT, PREPARED = 5_000, 1_000  # matches, and texts made ready, remembered: the same come again and again
OPENED = 50  # documents held while the hits of one list are looked up
LONGEST_LOCATED = 20_000  # characters of a text that is looked for without regard to white space
# Letters of scripts that put no space between words count as a word each.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_PLACE_ID = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.DOTALL)  # how an id names a place in a document


class Searched(Protocol):
    """The corpus methods that passage matching uses."""

    def by_ids(self, ids: Sequence[str], /) -> dict[str, Passage]: ...
    def spanning(self, document: str, start: int, end: int, /) -> list[Passage]: ...
    def document(self, id: str, /) -> tuple[Document, list[Passage]]: ...
    def passages(self, rows: Sequence[int], /) -> list[Passage]: ...
    def everything(self) -> Iterable[tuple[int, Passage, Mapping[str, str]]]: ...


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage of the ranking: hit number `at`, from 0. Without a `rule` the corpus does not have it."""

    passage: Passage
    at: int
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Standing:
    """The place of one hit in the corpus."""

    doc: str  # its document in the corpus, or as the pipeline named it
    span: Span | None  # its characters in that document; None if they are not known
    ids: tuple[str, ...]  # the passages it has at least half of, or the one it is part of


@dataclass(frozen=True, slots=True)
class Matched:
    """A ranking as distinct passages of a corpus, each at its best returned rank."""

    placed: tuple[Placed, ...]
    rules: tuple[Rule | None, ...]  # for each hit, its matching rule; None if unmatched
    repeats: int = 0  # number of hits that name only passages of earlier ones
    spread: int = 0  # number of hits that contain several passages
    clashes: int = 0  # number of hits whose id belongs to other text in the corpus
    standing: tuple[Standing, ...] = ()  # of each hit


def describe(matches: Sequence[Matched]) -> str:
    """Describe how many hits of some rankings were matched, by which rules, and other findings."""
    count = Counter(rule for one in matches for rule in one.rules)
    total, lost = count.total(), count[None]
    if not total:
        return "No passages were returned."
    by = ", ".join(f"{count[rule]:,} {told}" for rule, told in RULES.items() if count[rule])
    said = [f"{total - lost:,} of {total:,} passages matched to the corpus" + (f": {by}" if by else "")]
    counted = (
        (lost, "not in the corpus"),
        (sum(one.repeats for one in matches), "returned again, counted at their best rank"),
        (sum(one.spread for one in matches), "longer than a passage, counted as each passage they hold"),
        (sum(one.clashes for one in matches), "with an id that the corpus has for other words"),
    )
    return "; ".join([*said, *(f"{number:,} {what}" for number, what in counted if number)]) + "."


def words(text: str) -> list[str]:
    """Return the words of a text for comparison, ignoring case, width and separators."""
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _WORD.findall(folded) or folded.split()


@dataclass(frozen=True, slots=True)
class _Text:
    """A text made ready to be compared: its words as one line, and the different ones."""

    line: str
    known: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Text:
        found = words(text)
        return cls(f" {' '.join(found)} ", frozenset(found))

    def holds(self, other: _Text) -> bool:
        return other.line in self.line

    def overlap(self, other: _Text) -> float:
        """Return the share of the words of the shorter text that the other contains (overlap coefficient)."""
        least = min(len(self.known), len(other.known))
        return len(self.known & other.known) / least if least else 0.0


@dataclass(frozen=True, slots=True)
class _Found:
    """The match of one hit, passages in the order of their document."""

    passages: tuple[Passage, ...]
    rule: Rule | None
    clash: bool = False
    standing: Standing = Standing("", None, ())


class Matcher:
    """Matches to one corpus; safe to use from several threads.

    Text is looked up among the words of all passages, which are read when that is first needed.
    """

    def __init__(self, corpus: Searched) -> None:
        self._corpus = corpus
        self._lookup: _Lookup | None = None
        self._known: Recent[tuple[object, ...], _Found] = Recent(KEPT)
        self._text = lru_cache(PREPARED)(_Text.of)

    def match(self, hits: Sequence[ForeignHit]) -> Matched:
        """Match the ranking of `hits`, best first, to passages of the corpus.

        The first matching rule applies: the hit's id, or its document's, is a passage's, unless their words
        differ; a passage shares at least half of the shorter of two spans in the same document; one text
        contains the other, or they share 0.8 of the words of the shorter one; the hit names a document and no
        text.
        """
        keys = [(hit.id, hit.doc_id, hit.start, hit.end, hit.text) for hit in hits]
        new = {key: hit for key, hit in zip(keys, hits, strict=True) if self._known.get(key) is None}
        fresh = dict(zip(new, self._find(list(new.values())), strict=True))
        for key, found in fresh.items():
            self._known[key] = found
        placed: dict[str, Placed] = {}
        repeats = spread = clashes = 0
        rules: list[Rule | None] = []
        standing: list[Standing] = []
        for at, (key, hit) in enumerate(zip(keys, hits, strict=True)):
            found = fresh.get(key) or self._known.get(key) or self._find([hit])[0]
            passages = found.passages or (own(hit),)
            rules.append(found.rule)
            standing.append(found.standing)
            repeats += all(passage.id in placed for passage in passages)
            spread += len(passages) > 1
            clashes += found.clash
            for passage in passages:
                placed.setdefault(passage.id, Placed(passage, at, found.rule))
        return Matched(tuple(placed.values()), tuple(rules), repeats, spread, clashes, tuple(standing))

    def _find(self, hits: Sequence[ForeignHit]) -> list[_Found]:
        there = self._corpus.by_ids(list({id for hit in hits for id in (hit.id, hit.doc_id) if id}))
        found = []
        for hit in hits:
            named, clash = self._named(hit, there)
            placed = (named,) if named is not None else self._at_place(hit)
            rule: Rule | None = "id" if named is not None else "offsets" if placed else None
            found.append(_Found(placed, rule, clash))
        left = [at for at, one in enumerate(found) if not one.passages and hits[at].text]
        for at, by_text in zip(left, self._by_text([hits[at] for at in left]), strict=True):
            found[at] = replace(by_text, clash=found[at].clash)
        texts = lru_cache(OPENED)(self._document)
        return [self._with_standing(hit, one, texts) for hit, one in zip(hits, found, strict=True)]

    def _with_standing(
        self, hit: ForeignHit, found: _Found, texts: Callable[[str], tuple[str, list[Passage]] | None]
    ) -> _Found:
        """`found` with what the hit stands for; a hit that no rule matched is looked up in its document."""
        doc = found.passages[0].doc_id if found.passages else hit.doc_id
        passage = found.passages[0] if found.rule == "id" else None
        span: Span | None = None
        if passage is not None and (not hit.text.strip() or hit.text == passage.text):
            span = passage.start, passage.end
        elif found.rule == "offsets" and hit.start is not None and hit.end is not None:
            span = hit.start, hit.end
        elif hit.text.strip():
            opened = texts(doc)
            span = _located(hit.text, opened[0]) if opened else None
            if span is None and passage is not None:
                span = passage.start, passage.end
        elif not found.passages and not found.clash:
            named = _PLACE_ID.fullmatch(hit.id or "")
            if named and (opened := texts(named[1])) and int(named[2]) < int(named[3]) <= len(opened[0]):
                doc, span = named[1], (int(named[2]), int(named[3]))
            elif opened := texts(doc):
                everything = tuple(opened[1])
                whole = Standing(doc, (0, len(opened[0])), tuple(one.id for one in everything))
                return _Found(everything, "document", standing=whole)
        if span is None:
            return replace(found, standing=Standing(doc, None, tuple(one.id for one in found.passages)))
        held = self._held(doc, *span)
        if not found.passages and held:
            found = replace(found, passages=tuple(held), rule="text" if hit.text.strip() else "offsets")
        ids = dict.fromkeys([*(one.id for one in found.passages), *(one.id for one in held)])
        return replace(found, standing=Standing(doc, span, tuple(ids)))

    def _document(self, id: str) -> tuple[str, list[Passage]] | None:
        """Return the text of a document and its passages, or None if the corpus does not have it."""
        try:
            document, passages = self._corpus.document(id)
        except BadInput:
            return None
        return (document.text, passages) if passages else None

    def _held(self, document: str, start: int, end: int) -> list[Passage]:
        """Return the passages of which the characters [start, end) cover at least half, else the passage they
        share most with, if that is half of them.
        """
        spanning = self._corpus.spanning(document, start, end)
        shared = {one: min(end, one.end) - max(start, one.start) for one in spanning}
        held = [passage for passage, size in shared.items() if size >= HALF * (passage.end - passage.start)]
        if held or not shared:
            return sorted(held, key=_in_order)
        best = _most(shared)
        return [best] if shared[best] >= HALF * (end - start) else []

    def _named(self, hit: ForeignHit, there: Mapping[str, Passage]) -> tuple[Passage | None, bool]:
        """Return the passage with the hit's id, and whether the corpus has that id only for other words."""
        clash = False
        for id in (hit.id, hit.doc_id):
            passage = there.get(id) if id else None
            if passage is None:
                continue
            if hit.text == passage.text:
                return passage, False
            theirs, ours = self._text(hit.text), self._text(passage.text)
            if not theirs.known or not ours.known or theirs.overlap(ours) >= HALF:
                return passage, False
            clash = True
        return None, clash

    def _at_place(self, hit: ForeignHit) -> tuple[Passage, ...]:
        """Return the passages at the hit's place in its document, as labels are matched to it; () if the
        words differ.
        """
        start, end = hit.start, hit.end
        if start is None or end is None or not 0 <= start < end:
            return ()
        theirs, held = self._text(hit.text) if hit.text.strip() else None, dict[Passage, int]()
        for passage in self._corpus.spanning(hit.doc_id, start, end):
            first, last = max(start, passage.start), min(end, passage.end)
            if last - first < HALF * min(end - start, passage.end - passage.start):
                continue
            ours = _Text.of(passage.text[first - passage.start : last - passage.start])
            if theirs is None or len(theirs.known & ours.known) >= LEAST * len(ours.known):
                held[passage] = last - first
        whole = sorted((p for p in held if p.start >= start and p.end <= end), key=_in_order)
        return tuple(whole) if len(whole) > 1 or not held else (_most(held),)

    def _by_text(self, hits: Sequence[ForeignHit]) -> Iterator[_Found]:
        if not hits:
            return
        if self._lookup is None:
            self._lookup = _Lookup(self._corpus.everything())
        texts = [self._text(hit.text) for hit in hits]
        rows = [self._lookup.candidates(text) for text in texts]
        needed = list({row for some in rows for row in some})
        passages = dict(zip(needed, self._corpus.passages(needed), strict=True))
        for hit, text, some in zip(hits, texts, rows, strict=True):
            yield self._closest(hit, text, {row: passages[row] for row in some})

    def _closest(self, hit: ForeignHit, text: _Text, candidates: Mapping[int, Passage]) -> _Found:
        """Of the candidates one of equal words, else one that holds the other, else the best overlap; then
        one of the same document, then the nearest in length, then the first. A text that is longer than it
        stands for every passage of that document that it holds.
        """
        size = len(text.line)
        best: tuple[tuple[bool, bool, bool, float, float, int], Passage, _Text] | None = None
        for row, passage in candidates.items():
            ours = self._text(passage.text)
            same, equal = passage.doc_id == hit.doc_id, text.line == ours.line
            overlap, shorter = text.overlap(ours), min(len(text.known), len(ours.known))
            if overlap < LEAST or not (equal or same or shorter >= SHORT):
                continue
            held = equal or text.holds(ours) or ours.holds(text)
            near = min(size, len(ours.line)) / max(size, len(ours.line))
            key = (equal, held, same, 1.0 if held else overlap, near, -row)
            if best is None or key > best[0]:
                best = key, passage, ours
        if best is None:
            return _Found((), None)
        (equal, held, *_), found, ours = best
        rule: Rule = "text" if held else "words"
        if equal or not held or len(ours.line) > size:
            return _Found((found,), rule)
        least = 1 if found.doc_id == hit.doc_id else SHORT
        inside = ((p, self._text(p.text)) for p in candidates.values() if p.doc_id == found.doc_id)
        every = (p for p, other in inside if len(other.known) >= least and text.holds(other))
        return _Found(tuple(sorted(every, key=_in_order)), rule)


def _located(text: str, document: str) -> Span | None:
    """Return the place of a text in a document, ignoring white space."""
    at = document.find(text)
    if at >= 0:
        return at, at + len(text)
    if len(text) > LONGEST_LOCATED:
        return None
    found = re.search(r"\s+".join(map(re.escape, text.split())), document)
    return found.span() if found is not None else None


def _most(shared: Mapping[Passage, int]) -> Passage:
    """Return the passage that shares most characters; of several the shortest, then the first."""
    return max(shared, key=lambda p: (shared[p], -(p.end - p.start), -p.start, p.id))


def _in_order(passage: Passage) -> tuple[int, int, str]:
    return passage.start, passage.end, passage.id


def own(hit: ForeignHit) -> Passage:
    """Return a hit outside the corpus as a separate passage; equal document and words have one id."""
    content = " ".join(words(hit.text)) or f"{hit.id or ''}\0{hit.start}\0{hit.end}"
    start = hit.start if hit.start is not None and hit.start >= 0 else 0
    end = hit.end if hit.end is not None and hit.end >= start else start + len(hit.text)
    return Passage(unmatched_id(hit.doc_id, content), hit.doc_id, hit.title or "", hit.text, start, end)


class _Lookup:
    """The passages that share at least LEAST of the words of the shorter text with another one.

    Every posting of the text's words is counted: 6 ms for a text of 80 words in 100,000 passages.
    """

    def __init__(self, passages: Iterable[tuple[int, Passage, Mapping[str, str]]]) -> None:
        from scipy.sparse import csr_matrix  # a question that asks no pipeline does not wait for it

        self._number: dict[str, int] = {}
        number = self._number
        numbers, counts = array("i"), array("i")
        for _, passage, _ in passages:
            different = set(words(passage.text))
            numbers.extend([number.setdefault(word, len(number)) for word in different])
            counts.append(len(different))
        self._sizes = np.array(counts, np.int32)
        having = np.ones(len(numbers), np.int8), (numbers, np.repeat(np.arange(len(counts)), counts))
        self._having = csr_matrix(having, (len(number), len(counts)))

    def candidates(self, text: _Text) -> list[int]:
        """Return the rows of the passages whose overlap with `text` is at least LEAST."""
        known = [n for word in text.known if (n := self._number.get(word)) is not None]
        shared = np.bincount(self._having[known].indices, minlength=len(self._sizes))
        least = np.maximum(1, LEAST * np.minimum(self._sizes, len(text.known)) - 1e-9)
        return np.flatnonzero(shared >= least).tolist()
