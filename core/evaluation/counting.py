"""The scoring of a ranking: each label counts once, at the first hit that has it. Labels are passages, places
in documents (quotes), or whole documents. A hit has a label if it contains at least half of the label's
characters, or, if it is too short for that, if all of it lies within the label. Several labels in one hit
take a rank each; a hit that has only labels found before takes one rank and is not relevant. For questions
with a labelled document, every ranking is one of documents, each at its first passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

from core.corpus.passage_matching import SHORT, words
from core.corpus.types import Span
from core.domain.outputs import ReturnedHit
from core.domain.ranked import Ranked
from core.domain.types import Passage
from core.evaluation.outcome import Outcome

HALF = 0.5  # the share of a label that a hit must contain
_PLACE = re.compile(r":\d+-\d+$")  # behind the document's id in that of a passage


@dataclass(frozen=True, slots=True)
class Place:
    """A label that is a place in a document, or all of it."""

    id: str  # what it is called in rankings and judgements
    grade: int
    doc: str
    start: int
    end: int
    passages: tuple[str, ...] = ()  # the passages of the corpus that have it
    text: str = ""  # the quote
    whole: bool = False  # the document was labelled, not a place in it
    least: float = 0.0  # characters of it that a hit must contain; below half only if no passage has half

    def within(self, start: int, end: int) -> bool:
        """Return whether the characters [start, end) of the document have this label."""
        shared = min(end, self.end) - max(start, self.start)
        return shared > 0 and (shared >= self.least or shared == end - start)

    def in_text(self, text: str, same_document: bool) -> bool:
        """Return whether a text with unknown place has at least half of the quote's words in one piece."""
        quote, given = _words(self.text), _words(text)
        if not quote or not (same_document or len(set(quote)) >= SHORT):
            return False
        if 2 * sum(word in set(given) for word in quote) < len(quote):
            return False
        longest = SequenceMatcher(None, given, quote, autojunk=False).find_longest_match()
        return longest.size >= HALF * len(quote)

    def held_by(self, hit: ReturnedHit) -> bool:
        """Return whether a hit of any chunking has this label."""
        same = hit.doc == self.doc
        if self.whole:
            return same
        if hit.start is not None and hit.end is not None:
            return same and self.within(hit.start, hit.end)
        return self.in_text(hit.text, same)


def place(
    doc: str, span: Span, grade: int, passages: Sequence[Passage], *, text: str = "", whole: bool = False
) -> Place:
    """Return the label on the characters `span` of a document whose passages are `passages`."""
    start, end = span
    if whole:
        return Place(doc, grade, doc, start, end, tuple(one.id for one in passages), whole=True)
    most = max((min(end, one.end) - max(start, one.start) for one in passages), default=0)
    bare = Place(f"{doc}:{start}-{end}", grade, doc, start, end, text=text)
    bare = replace(bare, least=max(1.0, min(HALF * (end - start), most)))
    return replace(bare, passages=tuple(one.id for one in passages if bare.within(one.start, one.end)))


def on_passage(passage: Passage, grade: int) -> Place:
    """Return the label on a passage of the corpus."""
    half = HALF * (passage.end - passage.start)
    return Place(
        passage.id, grade, passage.doc_id, passage.start, passage.end, (passage.id,), passage.text, least=half
    )


def document_of(passage: str) -> str:
    """Return the document's id in that of a passage cut out of it; a passage kept whole has the same id."""
    return _PLACE.sub("", passage)


def grades(
    places: Sequence[Place], passages: Mapping[str, int], more: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """Return the judgements a ranking of `counted` is scored by; `passages` are those of passages, which
    count as they are without `places`. `more` are grades of further passages.
    """
    if not places:
        return {**(more or {}), **passages}
    whole = by_document(places)
    found = {} if whole else {id: 0 for place in places for id in place.passages}
    for id, grade in (more or {}).items():
        name = document_of(id) if whole else id
        found[name] = max(grade, found.get(name, grade))
    own: dict[str, int] = {}
    for place in places:
        own[place.id] = max(place.grade, own.get(place.id, place.grade))
    return found | own


def by_document(places: Iterable[Place]) -> bool:
    """Return whether rankings are scored as rankings of documents."""
    return any(place.whole for place in places)


def counted(places: Sequence[Place], passages: Mapping[str, int], outcome: Outcome) -> Ranked:
    """Return the ranking of an outcome in terms of the labels: see the module."""
    if outcome.returned:
        return _scored(places, outcome.returned) if places else _by_passage(passages, outcome)
    return of_passages(places, outcome.hits, outcome.documents)


def of_passages(places: Sequence[Place], hits: Ranked, documents: Mapping[str, str] | None = None) -> Ranked:
    """Return a ranking of the corpus' passages in terms of the labels: see the module. `documents` has the
    documents that ids do not show.
    """
    if not places or not hits:
        return hits
    if by_document(places):
        known = documents or {}
        own = (ReturnedHit(id, score, known.get(id) or document_of(id), ids=(id,)) for id, score in hits)
        return _scored(places, own)
    carried, labels, seen = _carried(places), {place.id for place in places}, dict[str, float]()
    for id, score in hits:
        names = [place.id for place in carried.get(id, ()) if place.id not in seen]
        for name in names or [f"{id}#again" if id in labels else id]:
            seen.setdefault(name, score)
    return tuple(seen.items())


def _carried(places: Iterable[Place]) -> dict[str, list[Place]]:
    """Return the labels of each passage that has any, best first."""
    carried: dict[str, list[Place]] = {}
    for place in sorted(places, key=lambda place: -place.grade):
        for id in place.passages:
            carried.setdefault(id, []).append(place)
    return carried


def _scored(places: Sequence[Place], hits: Iterable[ReturnedHit]) -> Ranked:
    whole, carried = by_document(places), _carried(places)
    best = sorted(places, key=lambda place: -place.grade)
    labels = {place.id for place in places}
    seen: dict[str, float] = {}
    documents: set[str] = set()
    for hit in hits:
        if hit.text or hit.start is not None:  # of any chunking
            found = [place for place in best if place.held_by(hit)]
        else:  # a passage of the corpus
            found = [place for id in hit.ids for place in carried.get(id, ())]
        names = [place.id for place in found if place.id not in seen]
        if not names and whole:
            names = [hit.doc] if hit.doc not in documents else []
        elif not names:
            name = hit.id if hit.start is None else f"{hit.doc}:{hit.start}-{hit.end}"
            name = f"{name}#again" if name in labels else name
            names = [name] if name not in seen else []
        seen |= dict.fromkeys(names, hit.score)
        documents |= {hit.doc, *(place.doc for place in found)}
    return tuple(seen.items())


def _by_passage(passages: Mapping[str, int], outcome: Outcome) -> Ranked:
    """Return a rank for each hit, whatever it holds, and one for each further labelled passage in it."""
    seen: dict[str, float] = {}
    for hit in outcome.returned:
        ids = hit.ids or (hit.id,)
        labelled = sorted((id for id in ids if passages.get(id, 0) > 0), key=lambda id: -passages[id])
        names = [id for id in labelled if id not in seen] or [id for id in ids if id not in seen][:1]
        seen |= dict.fromkeys(names, hit.score)
    return tuple(seen.items())


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(words(text))
