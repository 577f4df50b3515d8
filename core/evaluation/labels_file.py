"""Ties labels, those of other tools too, to the passages of a corpus, so that they outlive a change of the
chunking.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from core.corpus.passage_matching import Matcher
from core.corpus.types import Document, Span
from core.domain.errors import BadInput
from core.domain.external import ForeignHit
from core.domain.relevance import unmatched_id
from core.domain.types import Passage
from core.evaluation.counting import HALF, Place, by_document, on_passage
from core.evaluation.counting import place as place_of
from core.evaluation.dataset import Evidence, LabelledSet, Written
from core.evaluation.question_folder import Qrels, merge
from core.evaluation.reading_losses import find, lost_id

PLACED_FROM = 2  # the grade from which a passage of a quote is relevant


class Documents(Protocol):
    """The corpus methods that locating labels uses."""

    @property
    def name(self) -> str: ...

    def by_ids(self, ids: Sequence[str], /) -> dict[str, Passage]: ...

    def document(self, id: str, /) -> tuple[Document, list[Passage]]: ...


def place(written: Written, corpus: Documents, *, relevant_from: int = PLACED_FROM) -> LabelledSet:
    """`written` with its quotes turned into passages of the corpus; of two grades for one the higher holds.

    Grades are 0-3: 3 answers, 2 answers a part or is a needed hop, 1 is background. Background is worth
    something to nDCG, but is not what a yes-or-no measure should call found: those count from grade 2.
    A label whose document or quote is not in the corpus as indexed stays, as one that nothing finds. Raises
    BadInput with file and line if the corpus has none of the documents.
    """
    opened: dict[str, tuple[Document, list[Passage]] | None] = {}
    unknown = ""
    qrels: Qrels = {}
    places: dict[str, tuple[Place, ...]] = {}
    for question, entries in written.evidence.items():
        for entry in entries:
            if entry.doc not in opened:
                try:
                    opened[entry.doc] = corpus.document(entry.doc)
                except BadInput as error:
                    opened[entry.doc], unknown = None, f"{entry.where}: {error}"
            span, found = None, opened[entry.doc]
            if found is not None:
                text = found[0].text
                span = (0, len(text)) if entry.quote is None else find(entry.quote, text)
            if found is None or span is None:  # one that nothing finds
                id = lost_id(entry)
                label = Place(id, entry.grade, entry.doc, 0, 0, (id,), text=entry.quote or "")
            else:
                text, whole = entry.quote or "", entry.quote is None
                label = place_of(found[0].id, span, entry.grade, found[1], text=text, whole=whole)
            merge(qrels, {question: dict.fromkeys(label.passages, entry.grade)})
            places[question] = (*places.get(question, ()), label)
    if opened and not any(opened.values()):
        raise BadInput(unknown)
    return LabelledSet(written.name, written.questions, qrels, relevant_from, places=places)


def holding(entry: Evidence, text: str, passages: Sequence[Passage]) -> list[str]:
    """Ids of the passages of a document that hold at least half of the quote, else of the one with most.

    Without a quote: every passage of the document. White space is not compared.
    """
    if entry.quote is None:
        return [passage.id for passage in passages]
    start, end = located(entry, text)
    held = {p.id: max(0, min(end, p.end) - max(start, p.start)) / max(1, end - start) for p in passages}
    return [id for id, share in held.items() if share >= HALF] or [max(held, key=lambda id: (held[id], id))]


def located(entry: Evidence, text: str) -> Span:
    """Return the place of the quote in its document's `text`, or all of the text without a quote. White space
    is ignored. Raises BadInput if the quote does not occur.
    """
    if entry.quote is None:
        return 0, len(text)
    found = find(entry.quote, text)
    if found is None:
        raise BadInput(
            f"{entry.where}: {entry.doc!r} as indexed does not hold the quote {entry.quote[:60]!r}"
        )
    return found


def with_judgements(labelled: LabelledSet, corpus: Documents) -> tuple[LabelledSet, set[str]]:
    """`labelled` with document ids as labels on documents, and the judged ids that the corpus lacks.

    Lacking ids stay: published figures count them as not found. BadInput if the corpus lacks all.
    """
    if labelled.places:
        return labelled, set()
    judged = sorted({name for labels in labelled.qrels.values() for name in labels})
    known = corpus.by_ids(judged)
    documents: dict[str, tuple[Document, list[Passage]]] = {}
    unknown = set()
    for name in judged:
        if name not in known:
            try:
                documents[name] = corpus.document(name)
            except BadInput:
                unknown.add(name)
    if judged and len(unknown) == len(judged):
        raise BadInput(
            f"{labelled.name}: none of the {len(judged)} judged ids is a passage or document of corpus "
            f"{corpus.name}, for example {judged[0]!r}"
        )
    qrels: Qrels = {}
    places: dict[str, tuple[Place, ...]] = {}
    for question, labels in labelled.qrels.items():
        found = []
        for name, grade in labels.items():
            if name in documents:
                document, passages = documents[name]
                label = place_of(document.id, (0, len(document.text)), grade, passages, whole=True)
            elif name in known:
                label = on_passage(known[name], grade)
            else:
                label = Place(name, grade, name, 0, 0, (name,))
            found.append(label)
            merge(qrels, {question: dict.fromkeys(label.passages, grade)})
        if by_document(found):
            places[question] = tuple(found)
    return replace(labelled, qrels=qrels, places=places), unknown


class MatchedCorpus(Documents, Protocol):
    """The corpus methods that matching labels of other tools uses."""

    @property
    def matcher(self) -> Matcher: ...

    def has_document(self, id: str, /) -> bool: ...


@dataclass(slots=True)
class Resolved:
    """A set whose labels are places in documents, and the labels that match nothing, by question."""

    written: Written
    lost: dict[str, dict[str, int]] = field(default_factory=dict)  # question -> made-up id -> grade
    reading: tuple[str, ...] = ()


def resolved(written: Written, corpus: MatchedCorpus) -> Resolved:
    """Match the labels of `written` that came from another tool to documents and passages of the corpus.

    A label that matches nothing stays: as one that no route can find.
    """
    opened: dict[str, Document | None] = {}
    lost: dict[str, dict[str, int]] = {}
    by_text: set[str] = set()
    evidence: dict[str, tuple[Evidence, ...]] = {}
    labels = missing = 0
    for question, entries in written.evidence.items():
        found: list[Evidence] = []
        for entry in entries:
            own = list(_places(entry, corpus, opened)) if entry.matched else [entry]
            found += own
            labels += entry.matched
            if entry.matched and any(one.quote for one in own):
                by_text.add(question)
            if not own:
                missing += 1
                id = unmatched_id(entry.doc, entry.quote or "")
                lost.setdefault(question, {})[id] = entry.grade
        evidence[question] = tuple(dict.fromkeys(found))
    reading = (*_about(written, by_text), *written.remarks)
    if missing:
        lost_said = f"{missing:,} of {labels:,} labels match nothing in {corpus.name}: not found by any route"
        reading = (*reading, lost_said)
    return Resolved(replace(written, evidence=evidence), lost, reading)


def _about(written: Written, by_text: set[str]) -> Iterator[str]:
    """Describe what was read."""
    if not written.format:
        return
    some = [entries for entries in written.evidence.values() if entries]
    quoted = sum(any(one.quote for one in entries) for entries in some)
    parts = [f"Read as {written.format}: {len(written.questions):,} questions"]
    if quoted:
        parts += [f"{quoted:,} with reference contexts", f"{len(by_text):,} matched to passages by text"]
    if named := len(some) - quoted:
        parts.append(f"{named:,} with relevant documents")
    if not some:
        parts.append("none with labels")
    yield ", ".join(parts)


def _places(entry: Evidence, corpus: MatchedCorpus, opened: dict[str, Document | None]) -> Iterator[Evidence]:
    """Yield the places that a label means: a document by its id or path, a passage by its id, or a text."""
    if not entry.quote:
        document = _named(entry.doc, corpus, opened)
        if document is not None:
            yield Evidence(document.id, entry.grade, where=entry.where)
            return
        passage = corpus.by_ids([entry.doc]).get(entry.doc)
        if passage is not None:
            yield Evidence(passage.doc_id, entry.grade, passage.text, entry.where)
            return
    source = _named(entry.doc, corpus, opened) if entry.doc and entry.quote else None
    text = entry.quote or entry.doc
    if source is not None and (stands := _standing(text, source.text)):
        yield Evidence(source.id, entry.grade, stands, entry.where)
        return
    hit = ForeignHit(source.id if source else entry.doc or "unnamed", text)
    matched = [placed.passage for placed in corpus.matcher.match([hit]).placed if placed.rule is not None]
    if not matched:
        if entry.quote and (named := _named(entry.quote, corpus, opened)) is not None:
            yield Evidence(named.id, entry.grade, where=entry.where)  # a file's name where a text should be
        return
    document = _named(matched[0].doc_id, corpus, opened)
    assert document is not None
    span = document.text[min(one.start for one in matched) : max(one.end for one in matched)]
    yield Evidence(document.id, entry.grade, _standing(text, document.text) or span, entry.where)


def _standing(text: str, document: str) -> str:
    """Return the text as it stands in a document, white space not compared; "" if it does not."""
    found = re.search(r"\s+".join(map(re.escape, text.split())), document) if text.strip() else None
    return found.group() if found else ""


def _named(id: str, corpus: MatchedCorpus, opened: dict[str, Document | None]) -> Document | None:
    """Return the document of this id; of a path, the document that its last parts name."""
    if id not in opened:
        opened[id] = None
        parts = re.split(r"[/\\]", id) if len(id) < 1_000 and "\n" not in id else []
        for at in range(len(parts)):
            name = "/".join(parts[at:])
            if corpus.has_document(name):
                opened[id] = corpus.document(name)[0]
                break
    return opened[id]
