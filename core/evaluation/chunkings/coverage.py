"""The share of the labelled text within the first tokens of a ranking, independent of the chunking. nDCG and
recall of passages depend on how many passages there are; the labelled text does not. A token is a word or a
mark (core.domain.text.TOKEN) of the document, so that text split in two counts as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.domain.text import TOKEN
from core.domain.types import Passage

if TYPE_CHECKING:
    from core.evaluation.labels_file import Documents

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

    def __init__(self, corpus: Documents) -> None:
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


def by_question(
    rankings: Mapping[str, Sequence[Range]], labelled: Mapping[str, Sequence[Range]]
) -> dict[str, dict[str, float]]:
    """Return the metrics of each question that has labelled text."""
    found = {
        question: measures(labelled.get(question, ()), ranking) for question, ranking in rankings.items()
    }
    return {question: values for question, values in found.items() if values is not None}
