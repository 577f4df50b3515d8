"""Ties labels to the passages of a corpus, so that they outlive a change of the chunking."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from core.corpus.types import Document, Span
from core.domain.errors import BadInput
from core.domain.types import Passage
from core.evaluation.dataset import Evidence, LabelledSet, Written
from core.evaluation.files import Qrels, merge

PLACED_FROM = 2  # the grade from which a passage of a quote is relevant
HALF = 0.5  # a passage that holds at least this share of a quote carries its grade


class Documents(Protocol):
    """What is needed of a corpus."""

    @property
    def name(self) -> str: ...

    def by_ids(self, ids: Sequence[str], /) -> dict[str, Passage]: ...

    def document(self, id: str, /) -> tuple[Document, list[Passage]]: ...


def place(written: Written, corpus: Documents, *, relevant_from: int = PLACED_FROM) -> LabelledSet:
    """`written` with its quotes turned into passages of the corpus; of two grades for one the higher holds.

    Grades are 0-3: 3 answers, 2 answers a part or is a needed hop, 1 is background. Background is worth
    something to nDCG, but is not what a yes-or-no measure should call found: those count from grade 2.
    Raises BadInput with file and line when a document or quote is not in the corpus as indexed.
    """
    opened: dict[str, tuple[Document, list[Passage]]] = {}
    qrels: Qrels = {}
    for question, entries in written.evidence.items():
        for entry in entries:
            if entry.doc not in opened:
                try:
                    opened[entry.doc] = corpus.document(entry.doc)
                except BadInput as error:
                    raise BadInput(f"{entry.where}: {error}") from None
            document, passages = opened[entry.doc]
            merge(qrels, {question: dict.fromkeys(holding(entry, document.text, passages), entry.grade)})
    return LabelledSet(written.name, written.questions, qrels, relevant_from)


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
    """Where the quote stands in its document's `text`, all of it without a quote; BadInput where it is not
    there. White space is not compared.
    """
    if entry.quote is None:
        return 0, len(text)
    found = re.search(r"\s+".join(map(re.escape, entry.quote.split())), text)
    if found is None:
        raise BadInput(
            f"{entry.where}: {entry.doc!r} as indexed does not hold the quote {entry.quote[:60]!r}"
        )
    return found.span()


def with_judgements(labelled: LabelledSet, corpus: Documents) -> tuple[LabelledSet, set[str]]:
    """`labelled` with document ids spread over their passages, and the judged ids that the corpus lacks.

    Lacking ids stay: published figures count them as not found. BadInput if the corpus lacks all.
    """
    judged = sorted({name for labels in labelled.qrels.values() for name in labels})
    targets: dict[str, list[str]] = {id: [id] for id in corpus.by_ids(judged)}
    unknown = set()
    for name in judged:
        if name not in targets:
            try:
                targets[name] = [passage.id for passage in corpus.document(name)[1]]
            except BadInput:
                unknown.add(name)
                targets[name] = [name]
    if judged and len(unknown) == len(judged):
        raise BadInput(
            f"{labelled.name}: none of the {len(judged)} judged ids is a passage or document of corpus "
            f"{corpus.name}, for example {judged[0]!r}"
        )
    qrels: Qrels = {}
    for question, labels in labelled.qrels.items():
        for name, grade in labels.items():
            merge(qrels, {question: dict.fromkeys(targets[name], grade)})
    return replace(labelled, qrels=qrels), unknown
