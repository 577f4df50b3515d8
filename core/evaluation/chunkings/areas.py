"""The places of each question's labelled text in the documents, independent of the chunking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.corpus.sections import sentences
from core.domain.errors import BadInput
from core.domain.text import tokens
from core.evaluation.chunkings.coverage import Range, Tokens
from core.evaluation.dataset import Evidence, LabelledSet, Written
from core.evaluation.labels_file import Documents, located
from core.evaluation.reading_losses import find, lost_id

if TYPE_CHECKING:
    from core.store import Store

WRITTEN_FROM = 2  # the grade from which a quote of an author counts as relevant: see labels_file.place


@dataclass(frozen=True, slots=True)
class Area:
    """Relevant text: characters [start, end) of a document."""

    doc: str  # of lost words an id that no document has
    start: int
    end: int
    whole: bool = False  # whether all of the document was labelled
    lost: int = 0  # tokens that were labelled but are not in the corpus as read


Areas = Mapping[str, tuple[Area, ...]]  # by question; one without relevant text is not in it


def in_words(areas: Areas) -> str:
    """Describe the labelled text that coverage is a share of."""
    every = {area for found in areas.values() for area in found}
    whole = sum(area.whole for area in every)
    lost = sum(bool(area.lost) for area in every)
    parts = [
        (len(every) - whole - lost, "labelled place", "labelled places"),
        (whole, "whole document", "whole documents"),
        (lost, "label lost in reading", "labels lost in reading"),
    ]
    return " and ".join(f"{n:,} {one if n == 1 else several}" for n, one, several in parts if n)


def written_of(found: LabelledSet, corpus: Documents) -> tuple[Written, list[str]]:
    """Return a set whose judgements name passages or documents as one that names places in documents, so that
    it holds for any chunking; and the judged ids that the corpus lacks.
    """
    judged = sorted({id for labels in found.qrels.values() for id in labels})
    passages, places, lost = corpus.by_ids(judged), {}, []
    for id in judged:
        if (passage := passages.get(id)) is not None and passage.doc_id != id:
            places[id] = Evidence(passage.doc_id, 0, passage.text or None)
        elif _text(corpus, id) is not None:
            places[id] = Evidence(id, 0)
        else:
            lost.append(id)
    evidence = {}
    for question, labels in found.qrels.items():
        where = f"{found.name}, question {question}"
        known = ((places[id], grade) for id, grade in labels.items() if id in places)
        evidence[question] = tuple(replace(one, grade=grade, where=where) for one, grade in known)
    return Written(found.name, found.questions, evidence), lost


def areas(
    found: Written,
    corpus: Documents,
    relevant_from: int = WRITTEN_FROM,
    original: Documents | None = None,
) -> Areas:
    """Return the relevant text of each question; words that the corpus lacks count as lost.

    With `original`, the corpus that was labelled, `corpus` is another reading of it: each sentence of a quote
    is located by itself. Raises BadInput if the corpus has none of the labelled text.
    """
    texts: dict[str, str | None] = {}
    placed: dict[str, tuple[Area, ...]] = {}
    error = None
    for question, entries in found.evidence.items():
        spans = []
        for entry in entries:
            if entry.grade < relevant_from:
                continue
            if entry.doc not in texts:
                texts[entry.doc] = _text(corpus, entry.doc)
            for part in _sentences(entry) if original is not None else (entry,):
                text = texts[entry.doc]
                try:
                    if text is None:
                        raise BadInput(f"{part.where}: corpus {corpus.name} has no document {part.doc!r}")
                    span = located(part, text)
                    spans.append(Area(part.doc, *span, span == (0, len(text))))
                except BadInput as missing:
                    error = error or missing
                    size = tokens(part.quote or (original and _text(original, entry.doc)) or "")
                    spans.append(Area(lost_id(part), 0, 0, lost=size or 1))
        if spans:
            placed[question] = tuple(dict.fromkeys(spans))
    if error is not None and original is None and all(area.lost for one in placed.values() for area in one):
        raise error
    return placed


def _text(corpus: Documents, document: str) -> str | None:
    try:
        return corpus.document(document)[0].text
    except BadInput:
        return None


def _sentences(entry: Evidence) -> list[Evidence]:
    quote = entry.quote or ""
    spans = sentences(quote, 0, len(quote))
    return [replace(entry, quote=quote[start:end]) for start, end in spans] or [entry]


def following(found: Written, corpus: Documents) -> Written:
    """Return labels for another reading: a quote not whole there becomes its longest sentence there."""
    texts = {doc: _text(corpus, doc) for by in found.evidence.values() for doc in {one.doc for one in by}}

    def held(entry: Evidence) -> Evidence:
        text = texts[entry.doc]
        if not entry.quote or not text or find(entry.quote, text):
            return entry
        parts = [one for one in _sentences(entry) if find(one.quote or "", text)]
        return max(parts, key=lambda one: len(one.quote or ""), default=entry)

    evidence = {id: tuple(map(held, entries)) for id, entries in found.evidence.items()}
    return replace(found, evidence=evidence)


def ranges(found: Sequence[Area], texts: Tokens) -> list[Range]:
    """Return relevant text as ranges of tokens; those of lost words are in no passage."""
    return [
        (area.doc, 0, area.lost) if area.lost else texts.range(area.doc, area.start, area.end)
        for area in found
    ]


def of_people(store: Store, name: str, corpus: Documents) -> tuple[Written, int, list[str]]:
    """Return a label set made here as places in documents, from which grade it counts, and what was lost."""
    from core.evaluation.labels import desk as desks
    from core.evaluation.labels.final import final

    desk = desks.load(store, name)
    evidence: dict[str, tuple[Evidence, ...]] = {question.id: () for question in desk.questions}
    lost = []
    for (question, id), one in final(desk).items():
        if one.grade is None:
            continue
        passage = desk.pool[question][id].passage
        entry = Evidence(passage.doc_id, one.grade, passage.text, f"label set {name}, passage {id}")
        try:
            located(entry, corpus.document(passage.doc_id)[0].text)
        except BadInput:
            lost.append(id)
            continue
        evidence[question] = (*evidence[question], entry)
    return Written(name, desk.questions, evidence), desk.set.relevant_from, lost
