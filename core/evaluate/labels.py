"""Ties labels to the passages of a corpus, so that they outlive a change of the chunking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.errors import BadInput
from core.evaluate.dataset import Evidence, LabelledSet, Written
from core.evaluate.files import Qrels, merge
from core.types import Passage

HALF = 0.5  # a passage that holds at least this share of a quote carries its grade


def place(written: Written, passages: Iterable[Passage], *, relevant_from: int = 2) -> LabelledSet:
    """`written` with its quotes turned into passages of the corpus.

    Grades are 0-3: 3 answers, 2 answers a part or is a needed hop, 1 is background. Background is worth
    something to nDCG, but is not what a yes-or-no measure should call found: those count from grade 2.
    Raises BadInput with file and line when a document or quote is not in the corpus as indexed.
    """
    wanted = {entry.doc for entries in written.evidence.values() for entry in entries}
    of_document: dict[str, list[Passage]] = {doc: [] for doc in wanted}
    for passage in passages:
        if passage.doc_id in of_document:
            of_document[passage.doc_id].append(passage)
    qrels: Qrels = {}
    for question, entries in written.evidence.items():
        for entry in entries:
            merge(qrels, {question: dict.fromkeys(holding(entry, of_document[entry.doc]), entry.grade)})
    return LabelledSet(written.name, written.questions, qrels, relevant_from)


def holding(entry: Evidence, passages: Sequence[Passage]) -> list[str]:
    """Ids of the passages of the document that hold at least half of the quote, else the one that holds most.

    Without a quote: every passage of the document.
    """
    if not passages:
        raise BadInput(f"{entry.where}: document {entry.doc!r} is not in the corpus as indexed")
    if entry.quote is None:
        return [passage.id for passage in passages]
    found = re.search(r"\s+".join(map(re.escape, entry.quote.split())), _text(passages))
    if found is None:
        raise BadInput(
            f"{entry.where}: {entry.doc!r} as indexed does not hold the quote {entry.quote[:60]!r}"
        )
    shares = {p.id: _overlap(p, *found.span()) / (found.end() - found.start()) for p in passages}
    return [p for p, share in shares.items() if share >= HALF] or [max(shares, key=lambda p: (shares[p], p))]


def judged_by_id(qrels: Qrels, passages: Iterable[Passage]) -> tuple[Qrels, set[str]]:
    """Judgements by passage id as they are, by document id for each of its passages; the ids of neither."""
    judged = {name for labels in qrels.values() for name in labels}
    known: set[str] = set()
    of_document: dict[str, list[str]] = {}
    for passage in passages:
        if passage.id in judged:
            known.add(passage.id)
        if passage.doc_id in judged:
            of_document.setdefault(passage.doc_id, []).append(passage.id)
    settled: Qrels = {}
    for question, labels in qrels.items():
        settled[question] = {}
        for name, grade in labels.items():
            targets = [name] if name in known else of_document.get(name, [name])
            merge(settled, {question: dict.fromkeys(targets, grade)})
    return settled, judged - known - of_document.keys()


def with_judgements(labelled: LabelledSet, passages: Iterable[Passage]) -> tuple[LabelledSet, set[str]]:
    """`labelled` by passages, and the ids that the corpus lacks; BadInput if it lacks all."""
    qrels, unknown = judged_by_id(labelled.qrels, passages)
    judged = {name for labels in labelled.qrels.values() for name in labels}
    if judged and unknown == judged:
        raise BadInput(
            f"{labelled.name}: none of the {len(judged)} judged ids is a passage or document of the corpus, "
            f"for example {min(judged)!r}"
        )
    return replace(labelled, qrels=qrels), unknown


def _text(passages: Sequence[Passage]) -> str:
    """The document as far as its passages tell it; what lies between them (trimmed white space) is blank."""
    size = max(_end(passage) for passage in passages)
    text = [" "] * size
    for passage in passages:
        text[passage.start : passage.start + len(passage.text)] = passage.text
    return "".join(text)


def _end(passage: Passage) -> int:
    return passage.start + len(passage.text)


def _overlap(passage: Passage, start: int, end: int) -> int:
    return max(0, min(end, _end(passage)) - max(start, passage.start))
