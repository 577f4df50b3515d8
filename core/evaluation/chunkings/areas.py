"""Where the labelled text of each question stands in the documents, whatever these are cut into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.domain.errors import BadInput
from core.evaluation.dataset import Evidence, LabelledSet, Written
from core.evaluation.labels_file import Documents, located

if TYPE_CHECKING:
    from core.store import Store

WRITTEN_FROM = 2  # the grade from which a quote of an author counts as relevant: see labels_file.place


@dataclass(frozen=True, slots=True)
class Area:
    """Relevant text: characters [start, end) of a document. `whole`: all of it was labelled."""

    doc: str
    start: int
    end: int
    whole: bool = False


Areas = Mapping[str, tuple[Area, ...]]  # by question; one without relevant text is not in it


def in_words(areas: Areas) -> str:
    """What was labelled, and so what coverage is a share of."""
    every = {area for found in areas.values() for area in found}
    whole = sum(area.whole for area in every)
    parts = [(len(every) - whole, "labelled place"), (whole, "whole document")]
    return " and ".join(f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in parts if n)


def written_of(found: LabelledSet, corpus: Documents) -> tuple[Written, list[str]]:
    """A set whose judgements name passages or documents as one that names places in documents, so that it
    holds for any chunking; and the judged ids that the corpus lacks.
    """
    judged = sorted({id for labels in found.qrels.values() for id in labels})
    passages, places, lost = corpus.by_ids(judged), {}, []
    for id in judged:
        if (passage := passages.get(id)) is not None and passage.doc_id != id:
            places[id] = (passage.doc_id, passage.text)
        else:
            try:
                places[id] = (corpus.document(id)[0].id, "")
            except BadInput:
                lost.append(id)
    evidence = {
        question: tuple(
            Evidence(doc, grade, quote or None, f"{found.name}, question {question}")
            for id, grade in labels.items()
            if id in places
            for doc, quote in [places[id]]
        )
        for question, labels in found.qrels.items()
    }
    return Written(found.name, found.questions, evidence), lost


def areas(found: Written, corpus: Documents, relevant_from: int = WRITTEN_FROM) -> Areas:
    """The relevant text of each question; BadInput where a document or quote is not in the corpus."""
    texts: dict[str, str] = {}
    placed: dict[str, tuple[Area, ...]] = {}
    for question, entries in found.evidence.items():
        spans = []
        for entry in entries:
            if entry.grade < relevant_from:
                continue
            if entry.doc not in texts:
                try:
                    texts[entry.doc] = corpus.document(entry.doc)[0].text
                except BadInput as error:
                    raise BadInput(f"{entry.where}: {error}") from None
            start, end = located(entry, texts[entry.doc])
            spans.append(Area(entry.doc, start, end, (start, end) == (0, len(texts[entry.doc]))))
        if spans:
            placed[question] = tuple(dict.fromkeys(spans))
    return placed


def of_people(store: Store, name: str, corpus: Documents) -> tuple[Written, int, list[str]]:
    """A label set made here as places in documents, from which grade it counts, and what was lost."""
    from core.evaluation.labels import desk as desks
    from core.evaluation.labels.final import final

    desk = desks.load(store, name)
    evidence: dict[str, list[Evidence]] = {question.id: [] for question in desk.questions}
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
        evidence[question].append(entry)
    return (
        Written(name, desk.questions, {id: tuple(entries) for id, entries in evidence.items()}),
        desk.set.relevant_from,
        lost,
    )
