"""BM25: the index is built by bm25s, and read from its files without importing it."""

from __future__ import annotations

import json
import logging
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.backends import array_files
from core.backends.base import Mask, Rows
from core.backends.languages import BY_STOP_WORDS, among, language
from core.backends.terms import WORD, Analyzer, from_record
from core.domain import system

K1, B = 1.5, 0.75
MAX_MEDIANS = 20  # medians: what is longer counts as that long in the mean length
REMEMBERED = 16_384  # terms whose place is not looked up again: routes ask for the same ones
MAX_NAMED_TERMS = 8  # terms that are named where nothing is found
DATA, ROWS, STARTS = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"  # bm25s's names
TERMS, TERM_STARTS, COLUMNS, ANALYZER = "terms.bin", "term_starts.npy", "term_columns.npy", "analyzer.json"


class BM25Index:
    """Scores by BM25 in Lucene's variant; a passage without a common term is no hit. Safe in threads.

    The score of every (term, passage) pair is computed at build time (Lù 2024, arXiv:2407.03618), so that a
    search only adds them up. The files are mapped, not read: opening costs the same at any size.
    """

    def __init__(self, folder: Path, size: int) -> None:
        """Open the index in `folder`, of `size` passages."""
        self.size = size
        stored = json.loads((folder / ANALYZER).read_text(encoding="utf-8"))
        self.analyzer = from_record(stored)
        self.k1, self.b, self.mean_length = (float(stored[name]) for name in ("k1", "b", "mean_length"))
        self._data, self._rows, self._starts, self._term_starts, self._columns = (
            system.mapped(folder / name) for name in (DATA, ROWS, STARTS, TERM_STARTS, COLUMNS)
        )
        self._terms = (folder / TERMS).read_bytes()
        self._range = lru_cache(REMEMBERED)(self._looked_up)

    def search(self, text: str, k: int, allowed: Mask | None = None) -> Rows:
        """Return the `k` best rows for `text` among those `allowed` (None: all), ties by row."""
        return top_k(self.scores(text), k, allowed)

    def scores(self, text: str) -> NDArray[np.float32]:
        """Return the score of every passage, shape (size,)."""
        return self.weighted(Counter(self.analyzer.questions.terms(text)))

    def score_of(self, passage: str, text: str) -> float:
        """Return the score that another passage would have for `text`, with the weights of this index."""
        terms = Counter(self.analyzer.terms(passage))
        length = 1 - self.b + self.b * terms.total() / self.mean_length
        return sum(idf * terms[term] / (terms[term] + self.k1 * length) for term, idf in self.terms(text))

    def weighted(self, terms: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the weighted sum of the scores of `terms`, as the analyzer produces them, for every passage,
        shape (size,).
        """
        total = np.zeros(self.size, np.float32)
        for term, weight in terms.items():
            rows, data = self._postings(term)
            total[rows] += data * np.float32(weight)
        return total

    def parts(self, terms: Mapping[str, float], row: int) -> list[tuple[str, float]]:
        """Return the positive contributions of `terms` to the score of `row` by `weighted`, largest first."""
        found = []
        for term, weight in terms.items():
            rows, data = self._postings(term)
            at = int(np.searchsorted(rows, row))
            if at < len(rows) and rows[at] == row:
                found.append((term, float(data[at]) * weight))
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def place(self, text: str, row: int) -> tuple[int, int]:
        """Return the rank of `row` for `text`, from 1, and the number of hits; rank 0 if it shares no term.

        No list is built: the rows before it are counted, ties by row.
        """
        scores = self.scores(text)
        own = scores[row]
        before = np.count_nonzero(scores > own) + np.count_nonzero(scores[:row] == own)
        return (int(before) + 1 if own > 0 else 0), self.having(scores)

    @staticmethod
    def having(scores: NDArray[np.float32]) -> int:
        """Count the rows that are hits."""
        return int(np.count_nonzero(scores > 0))

    def explain(self, text: str, row: int) -> dict[str, float]:
        """Return the contribution of each word of `text` to the score of `row`; 0 for a word the passage
        lacks.
        """
        parts: dict[str, float] = {}
        for word, term in self.analyzer.questions.words(text):
            found = dict(self.parts({term: 1.0}, row))
            parts[word] = parts.get(word, 0.0) + found.get(term, 0.0)
        return parts

    def idf(self, words: Sequence[str]) -> list[float]:
        """Return the weight of each word in BM25: log(1 + (n - df + 0.5) / (df + 0.5)), where df of n
        passages contain it; 0 for a word that does not count, such as a stop word.
        """
        return [max(map(self._idf, self.analyzer.questions.terms(word)), default=0.0) for word in words]

    def terms(self, text: str) -> list[tuple[str, float]]:
        """Return the terms of `text` in order, repeats included, each with its weight as in `idf`."""
        return [(term, self._idf(term)) for term in self.analyzer.questions.terms(text)]

    def why_nothing(self, text: str) -> str:
        """Why `text` has no hit, as a clause; only for a text without any."""
        known = " and ".join(self.analyzer.languages)
        terms = list(dict.fromkeys(self.analyzer.questions.terms(text)))
        if not terms:
            if WORD.search(text):
                return f"the question has only stop words of {known.title()}"
            return "the question has no word of two letters or more"
        shown = ", ".join(terms[:MAX_NAMED_TERMS]) + (", ..." if len(terms) > MAX_NAMED_TERMS else "")
        why = f"no passage has any of its terms ({shown}), so every BM25 score is 0"
        asked = language(text) or among(text, BY_STOP_WORDS)
        if asked is not None and asked not in self.analyzer.languages:
            why += f"; the question looks {asked.title()}, and the words of this corpus are cut as"
            why += f" {known.title()} (index --language auto finds its language)"
        return why

    def _idf(self, term: str) -> float:
        having = len(self._postings(term)[0])
        return math.log(1 + (self.size - having + 0.5) / (having + 0.5))

    def _postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rows that have `term`, ascending, and what it adds to the score of each."""
        first, last = self._range(term)
        return self._rows[first:last], self._data[first:last]

    def _looked_up(self, term: str) -> tuple[int, int]:
        """Return the start and end of the postings of `term`; (0, 0) if no passage contains it."""
        wanted, starts = term.encode("utf-8", "replace"), self._term_starts
        at = bisect_left(range(len(starts) - 1), wanted, key=lambda i: self._terms[starts[i] : starts[i + 1]])
        if at == len(starts) - 1 or self._terms[starts[at] : starts[at + 1]] != wanted:
            return 0, 0
        column = int(self._columns[at])
        return int(self._starts[column]), int(self._starts[column + 1])


def mean_length(lengths: Sequence[int]) -> float:
    """Return the mean number of terms, in which no passage counts as more than MAX_MEDIANS medians: one
    endless passage must not change how lengths count for all others.
    """
    median = float(np.median(lengths))
    return float(np.mean(np.minimum(lengths, MAX_MEDIANS * median) if median else lengths))


def write_index(
    texts: Iterable[str], folder: Path, analyzer: Analyzer, check: Callable[[int], None] = lambda _: None
) -> None:
    """Build the index of `texts`, in row order, in a new `folder`; `check` is called with each row."""
    columns: dict[str, int] = {}
    documents: list[array[int]] = []
    for row, text in enumerate(texts):
        check(row)
        terms = analyzer.terms(text)
        documents.append(array("i", [columns.setdefault(term, len(columns)) for term in terms]))
    folder.mkdir()
    mean = 1.0
    if columns:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # its import sets it to DEBUG
        # bm25s divides by the plain mean: k1 and b make up for that, as only k1*(1-b) and k1*b/mean count.
        lengths = [len(terms) for terms in documents]
        mean = mean_length(lengths)
        scale = K1 * B * float(np.mean(lengths)) / mean
        k1 = K1 * (1 - B) + scale
        index = bm25s.BM25(k1=k1, b=scale / k1, method="lucene", csc_backend="scipy")
        index.index((documents, columns), create_empty_token=False, show_progress=False)
        for name, part in ((DATA, "data"), (ROWS, "indices"), (STARTS, "indptr")):
            array_files.save(folder / name, index.scores[part])
    else:
        for name, kind in ((DATA, np.float32), (ROWS, np.int32)):
            array_files.save(folder / name, np.empty(0, kind))
        array_files.save(folder / STARTS, np.zeros(1, np.int32))
    ordered = sorted((term.encode(), column) for term, column in columns.items())
    (folder / TERMS).write_bytes(b"".join(term for term, _ in ordered))
    array_files.save(
        folder / TERM_STARTS, np.cumsum([0, *(len(term) for term, _ in ordered)], dtype=np.int64)
    )
    array_files.save(folder / COLUMNS, np.array([column for _, column in ordered], np.int32))
    stored = {**analyzer.record(), "k1": K1, "b": B, "mean_length": mean, "method": "lucene"}
    (folder / ANALYZER).write_text(json.dumps(stored, ensure_ascii=False), encoding="utf-8")


BLOCK = 256


def top_k(scores: NDArray[np.float32], k: int, allowed: Mask | None = None) -> Rows:
    """Return the `k` highest scores above 0 with their rows, best first, ties by row, of those `allowed`
    (None: all); `scores` has shape (n,).

    At least k scores reach the k-th highest of the blocks' maxima, so only those that do are examined (cf.
    block-max indexes, Ding & Suel 2011).
    """
    if k < 1 or not len(scores):
        return []
    if allowed is not None:
        scores = np.where(allowed, scores, np.float32(0))
    whole = len(scores) // BLOCK * BLOCK
    maxima = scores[:whole].reshape(-1, BLOCK).max(axis=1)
    floor = np.partition(maxima, len(maxima) - k)[len(maxima) - k] if len(maxima) >= k else 0.0
    rows = np.flatnonzero(scores >= floor if floor > 0 else scores > 0)
    if len(rows) > k:
        found = scores[rows]
        edge = np.partition(found, len(rows) - k)[len(rows) - k]
        above = rows[found > edge]
        rows = np.concatenate([above, rows[found == edge][: k - len(above)]])
    order = rows[np.lexsort((rows, -scores[rows]))]
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))


class RankBM25Index:
    """Lucene's variant of BM25 on top of rank-bm25's ATIRE-like one. Thread-safe once built.

    Two differences are corrected: the idf is ln(1 + (N - n + 0.5) / (n + 0.5)) instead of the one that turns
    negative for terms in more than half of the passages, and the factor (k1 + 1) of every score is divided
    out. Term frequencies, lengths and the sum are rank-bm25's own. It holds the terms of all passages in
    memory and scans every passage for every term. Source: Kamphuis et al. 2020, "Which BM25 Do You Mean?",
    doi:10.1007/978-3-030-45442-5_4, table 1.
    """

    def __init__(self, texts: Iterable[str], analyzer: Analyzer, k1: float = K1, b: float = B) -> None:
        """Index `texts`, in row order."""
        documents = [analyzer.terms(text) for text in texts]
        self.size = len(documents)
        self._analyzer, self._scale = analyzer, k1 + 1
        # rank-bm25 divides by the mean length: it cannot hold passages none of which has a term
        self._index = _lucene(documents, k1, b) if any(documents) else None

    def search(self, text: str, k: int, allowed: Mask | None = None) -> Rows:
        """Return the `k` best rows for `text` among those `allowed` (None: all), ties by row."""
        return top_k(self.scores(text).astype(np.float32), k, allowed)

    def scores(self, text: str) -> NDArray[np.float64]:
        """Return the score of every passage, shape (size,)."""
        if self._index is None:
            return np.zeros(self.size)
        found: NDArray[np.float64] = (
            self._index.get_scores(self._analyzer.questions.terms(text)) / self._scale
        )
        return found


def _lucene(documents: list[list[str]], k1: float, b: float) -> Any:
    from rank_bm25 import BM25Okapi

    class Lucene(BM25Okapi):  # type: ignore[misc]  # the package is untyped
        def _calc_idf(self, nd: dict[str, int]) -> None:
            for term, having in nd.items():
                self.idf[term] = math.log(1 + (self.corpus_size - having + 0.5) / (having + 0.5))

    made = Lucene(documents, k1=k1, b=b)
    made.avgdl = mean_length([len(terms) for terms in documents])
    return made
