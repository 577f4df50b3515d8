"""The labelled text of each question as places in documents, and the share of it within the first tokens of a
ranking, both independent of the chunking. nDCG and recall of passages depend on how many passages there are;
the labelled text does not. A token is a word or a mark (core.domain.text.TOKEN) of the document, so that text
split in two counts as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.corpus.chunk import sentences
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput
from core.domain.text import TOKEN, tokens
from core.domain.types import Passage
from core.evaluation.counting import Place
from core.evaluation.dataset import Evidence, LabelledSet, Written
from core.evaluation.finding import count
from core.evaluation.labels_file import find, is_lost, place

BUDGETS = (250, 500, 1000, 2000, 4000)
BUDGET = 1000  # tokens that the other figures are about
COVERAGE = f"coverage@{BUDGET}"
READING = ("area", "density", "documents", "passages", "tokens a passage")
METRICS = (*(f"coverage@{n}" for n in BUDGETS), *READING)
Range = tuple[str, int, int]  # a document, its first token and the one behind the last
Gains = NDArray[np.bool_]
KEPT = 4096  # documents whose tokens are remembered


class Tokens:
    """The start positions of the tokens in a corpus' documents."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._starts = lru_cache(KEPT)(self._read)

    def range(self, document: str, start: int, end: int) -> Range:
        """Return the tokens of a document that begin in its characters [start, end)."""
        first, last = np.searchsorted(self._starts(document), (start, end)).tolist()
        return document, first, last

    def of(self, passage: Passage) -> Range:
        """Return the tokens of a passage."""
        return self.range(passage.doc_id, passage.start, passage.end)

    def _read(self, document: str) -> NDArray[np.int64]:
        text = self._corpus.document(document)[0].text
        return np.fromiter((match.start() for match in TOKEN.finditer(text)), np.int64)


def united(ranges: Iterable[Range]) -> dict[str, NDArray[np.int64]]:
    """Return the tokens that are in any of `ranges`, by document, each once."""
    found: dict[str, list[int]] = {}
    for document, first, last in ranges:
        found.setdefault(document, []).extend(range(first, last))
    return {document: np.unique(np.array(numbers, np.int64)) for document, numbers in found.items()}


def gains(labelled: Iterable[Range], ranking: Iterable[Range], most: int | None = None) -> Gains:
    """For each token as it is read, the first passage first: whether it is labelled and read for the first
    time. Shape (tokens read,), at most `most`. Text that comes again is read again and gains nothing.
    """
    left: dict[str, Gains] = {}  # of each document, whether a token is labelled and not read yet
    for document, numbers in united(labelled).items():
        left[document] = np.zeros(numbers[-1] + 1 if len(numbers) else 0, bool)
        left[document][numbers] = True
    read, count = [np.zeros(0, bool)], 0
    for document, first, last in ranking:
        piece = np.zeros(last - first, bool)
        if document in left:
            part = left[document][first:last]
            piece[: len(part)] = part
            part[:] = False
        read.append(piece)
        count += len(piece)
        if most is not None and count >= most:
            break
    return np.concatenate(read)[:most]


def measures(labelled: Sequence[Range], ranking: Sequence[Range]) -> dict[str, float] | None:
    """Return the metrics of one ranking, or None if nothing is labelled.

    "coverage@n": the share of the labelled tokens that are among the first n read. "area": the mean coverage
    over the budgets 1 to BUDGET, which counts early text more. Over the first BUDGET tokens, "density": the
    share of the tokens read that were labelled and new; "documents": the share of the labelled documents of
    which something was read; "passages": how many were begun. "tokens a passage": over the whole ranking.
    """
    total = sum(map(len, united(labelled).values()))
    if not total:
        return None
    read = gains(labelled, ranking, max(BUDGETS))
    covered = np.concatenate([[0], np.cumsum(read)]) / total
    upto = np.minimum(np.arange(1, BUDGET + 1), len(read))
    lengths = np.array([last - first for _, first, last in ranking], np.int64)
    begun = int((np.concatenate([[0], np.cumsum(lengths)])[:-1] < BUDGET).sum())
    named = {document for document, *_ in labelled}
    head = read[:BUDGET]
    return {
        **{f"coverage@{n}": float(covered[min(n, len(read))]) for n in BUDGETS},
        "area": float(covered[upto].mean()),
        "density": float(head.mean()) if len(head) else 0.0,
        "documents": len(named & {document for document, *_ in ranking[:begun]}) / len(named),
        "passages": float(begun),
        "tokens a passage": float(lengths.mean()) if len(lengths) else 0.0,
    }


def passage_by_passage(labelled: Sequence[Range], ranking: Sequence[Range]) -> list[tuple[int, float]]:
    """Return, for each passage that begins within the budget, how many of its tokens are read and the
    coverage after it.
    """
    total = sum(map(len, united(labelled).values()))
    read = gains(labelled, ranking, BUDGET)
    found, at = [], 0
    for _, first, last in ranking:
        if at >= len(read):
            break
        end = min(at + last - first, len(read))
        found.append((end - at, float(read[:end].sum()) / total if total else 0.0))
        at = end
    return found


def reachable(labelled: Sequence[Range]) -> float:
    """Return the coverage of a perfect ranking: below 1 where more is labelled than the budget holds."""
    total = sum(map(len, united(labelled).values()))
    return min(1.0, BUDGET / total) if total else 0.0


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
    parts = {"labelled places": len(every) - whole - lost, "whole documents": whole, "lost labels": lost}
    return " and ".join(count(n, what) for what, n in parts.items() if n)


def written_of(found: LabelledSet, corpus: Corpus) -> tuple[Written, list[str]]:
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
    found: Written, corpus: Corpus, relevant_from: int = WRITTEN_FROM, original: Corpus | None = None
) -> Areas:
    """Return the relevant text of each question; words that the corpus lacks count as lost.

    With `original`, the corpus that was labelled, `corpus` is another reading of it: each sentence of a quote
    is located by itself. Raises BadInput if the corpus has none of the labelled documents.
    """
    if original is not None:
        split = {
            id: [part for one in some for part in _sentences(one, corpus, original)]
            for id, some in found.evidence.items()
        }
        found = replace(found, evidence={id: tuple(some) for id, some in split.items()})
    placed: dict[str, tuple[Area, ...]] = {}
    for question, places in place(found, corpus).places.items():
        spans = [_area(one) for one in places if one.grade >= relevant_from]
        if spans:
            placed[question] = tuple(dict.fromkeys(spans))
    return placed


def _area(one: Place) -> Area:
    if is_lost(one.id):
        return Area(one.id, 0, 0, lost=tokens(one.text) or 1)
    return Area(one.doc, one.start, one.end, one.whole)


def _text(corpus: Corpus, document: str) -> str | None:
    try:
        return corpus.document(document)[0].text
    except BadInput:
        return None


def _sentences(entry: Evidence, corpus: Corpus, original: Corpus | None = None) -> list[Evidence]:
    """Return the sentences of a quote, or of a whole document that another reading of `original` lacks."""
    quote = entry.quote or ""
    if original is not None and not quote and not corpus.has_document(entry.doc):
        quote = _text(original, entry.doc) or ""
    spans = sentences(quote, 0, len(quote))
    return [replace(entry, quote=quote[start:end]) for start, end in spans] or [entry]


def following(found: Written, corpus: Corpus) -> Written:
    """Return labels for another reading: a quote not whole there becomes its longest sentence there."""
    texts = {doc: _text(corpus, doc) for by in found.evidence.values() for doc in {one.doc for one in by}}

    def held(entry: Evidence) -> Evidence:
        text = texts[entry.doc]
        if not entry.quote or not text or find(entry.quote, text):
            return entry
        parts = [one for one in _sentences(entry, corpus) if find(one.quote or "", text)]
        return max(parts, key=lambda one: len(one.quote or ""), default=entry)

    evidence = {id: tuple(map(held, entries)) for id, entries in found.evidence.items()}
    return replace(found, evidence=evidence)


def ranges(found: Sequence[Area], texts: Tokens) -> list[Range]:
    """Return relevant text as ranges of tokens; those of lost words are in no passage."""
    return [
        (area.doc, 0, area.lost) if area.lost else texts.range(area.doc, area.start, area.end)
        for area in found
    ]
