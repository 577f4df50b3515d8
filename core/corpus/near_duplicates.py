"""Passages of a corpus that say nearly the same: by the words they share, or by their vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from core.backends.base import Matrix
from core.corpus.corpus import Corpus
from core.domain.errors import BadInput

By = Literal["words", "embedding"]
LEAST: Mapping[By, float] = {"words": 0.5, "embedding": 0.8}  # what is less alike is not looked for
USUAL: Mapping[By, float] = {"words": 0.8, "embedding": 0.95}
MOST = 100_000  # pairs kept; of more the most alike
BLOCK = 256  # passages compared with all others between two looks at Stop
LARGE = 50_000  # passages; of more, all pairs take too long, and words too much memory
NEIGHBOURS = 20  # nearest of each passage that are looked at where the graph of the vectors is asked
CHUNK = 20_000  # pairs whose common shingles are counted at once
SHINGLE = 3  # words, as routes compare passages
_WORD = re.compile(r"\w+")
Tick = Callable[[int, int], None]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Near:
    """The near-duplicates of a corpus. Passages with equal text, except white space, are copies; only the
    first of each set of copies is in the pairs.
    """

    by: By
    fingerprint: str
    copies: tuple[tuple[int, ...], ...]  # sets of rows, in order
    pairs: Rows  # shape (n, 2), the lower row first, the most similar pair first
    similarity: NDArray[np.float64]  # shape (n,)
    documents: Rows  # shape (passages,), the number of each row's document
    complete: float  # all pairs of at least this similarity are included
    sampled: bool = False  # True if only each passage's nearest neighbours in the vector graph were compared

    @property
    def repeats(self) -> int:
        """Passages that repeat an earlier one."""
        return sum(len(rows) - 1 for rows in self.copies)

    def above(self, threshold: float, *, across: bool = False) -> Rows:
        """Places in `pairs` of those at least that much alike; with `across` of two documents only."""
        places = np.flatnonzero(self.similarity >= threshold)
        return places[self._crosses(places)] if across else places

    def groups(self, threshold: float) -> list[tuple[int, ...]]:
        """Return sets of passages connected by pairs of at least `threshold` or by copies, the largest first.

        Two passages of a group need not be similar: each is similar to some other one.
        """
        edges = [tuple(pair) for pair in self.pairs[self.above(threshold)].tolist()]
        edges += [(rows[0], row) for rows in self.copies for row in rows[1:]]
        if not edges:
            return []
        one, two = np.array(edges).T
        size = len(self.documents)
        _, label = connected_components(coo_matrix((np.ones(len(one)), (one, two)), (size, size)), False)
        members: dict[int, list[int]] = {}
        for row in sorted({*one.tolist(), *two.tolist()}):
            members.setdefault(int(label[row]), []).append(row)
        return sorted(map(tuple, members.values()), key=lambda rows: (-len(rows), rows))

    def in_words(self, threshold: float) -> str:
        """Describe the finding."""
        places = self.above(threshold)
        across = int(self._crosses(places).sum())
        what = "share of 3-word shingles" if self.by == "words" else "cosine"
        highest = f"; the highest is {self.similarity[0]:.2f}" if len(self.pairs) else ""
        return (
            f"Passages that repeat another word for word: {self.repeats:,}. Pairs with a {what} of"
            f" {threshold:.2f} or more: {len(places):,}, {across:,} of them across documents{highest}."
        )

    def _crosses(self, places: Rows) -> NDArray[np.bool_]:
        one, two = self.documents[self.pairs[places]].reshape(-1, 2).T
        found: NDArray[np.bool_] = one != two
        return found


def refused(by: By, size: int, graph: bool) -> str | None:
    """Why that many passages are not compared, or None; `graph`: whether their vectors have one."""
    if size <= LARGE or (by == "embedding" and graph):
        return None
    if by == "words":
        return f"{size:,} passages are too many to compare by words (at most {LARGE:,}); compare by meaning"
    how = "their vectors have no graph: set exact_below to fewer passages and index the corpus again"
    return f"{size:,} passages are too many to compare one by one, at most {LARGE:,}, and {how}"


def find(corpus: Corpus, by: By, tick: Tick = lambda _done, _total: None, *, graph: bool = False) -> Near:
    """Every two passages of a corpus that are alike to at least LEAST[by], without exception; of more than
    LARGE passages, those that the `graph` of their vectors finds. BadInput where they are too many.

    "words": Jaccard similarity of the sets of three consecutive words, as `core.steps.select.resemblance`;
    "embedding": cosine of the stored vectors, to 6 decimals. `tick` may raise Cancelled.
    """
    if by not in LEAST:
        raise BadInput(f"near-duplicates by {by!r}; give one of {', '.join(LEAST)}")
    passages = [passage for _, passage, _ in corpus.everything()]
    if why := refused(by, len(passages), graph):
        raise BadInput(why)
    numbers: dict[str, int] = {}
    documents = [numbers.setdefault(passage.doc_id, len(numbers)) for passage in passages]
    texts, having = [passage.text for passage in passages], dict[str, list[int]]()
    for row, text in enumerate(texts):
        having.setdefault(" ".join(text.split()), []).append(row)
    copies = tuple(tuple(rows) for rows in having.values() if len(rows) > 1)
    rows = [rows[0] for rows in having.values()]
    kept = _Kept(LEAST[by])
    sampled = by == "embedding" and len(texts) > LARGE
    if by == "words":
        _by_words([texts[row] for row in rows], kept, tick)
    elif sampled:
        _by_graph(corpus, rows, kept, tick)
    else:
        _by_vectors(corpus.vectors(rows), kept, tick)
    places, similarity = kept.ordered()
    pairs = np.array(rows, np.int64)[places] if rows else places
    numbered = np.array(documents, np.int64)
    return Near(by, corpus.fingerprint, copies, pairs, similarity, numbered, kept.least, sampled)


class _Kept:
    """The pairs found so far; of more than MOST the most alike, and `least` rises to what is complete."""

    def __init__(self, least: float) -> None:
        self.least = least
        self._pairs: list[Rows] = []
        self._similarity: list[NDArray[np.float64]] = []

    def add(self, one: Rows, two: Rows, similarity: NDArray[np.float64]) -> None:
        enough = similarity >= self.least
        self._pairs.append(np.column_stack([one[enough], two[enough]]))
        self._similarity.append(similarity[enough])
        if sum(map(len, self._similarity)) > MOST:
            # Keep what is above the first value that does not fit; where all are equal, the first MOST.
            pairs, alike = self.ordered()
            edge = alike[MOST]
            keep = int(np.searchsorted(-alike, -edge, "left")) or MOST
            self._pairs, self._similarity = [pairs[:keep]], [alike[:keep]]
            self.least = float(np.nextafter(edge, 2.0))

    def ordered(self) -> tuple[Rows, NDArray[np.float64]]:
        pairs = np.concatenate([np.empty((0, 2), np.int64), *self._pairs])
        similarity = np.concatenate([np.empty(0), *self._similarity])
        order = np.lexsort((pairs[:, 1], pairs[:, 0], -similarity))
        return pairs[order], similarity[order]


def _by_vectors(vectors: Matrix, kept: _Kept, tick: Tick) -> None:
    for start in range(0, len(vectors), BLOCK):
        tick(start, len(vectors))
        block = vectors[start : start + BLOCK]
        rough = np.triu(block @ vectors[start:].T, 1)  # a product of float32 may be off in the 7th decimal
        one, two = np.nonzero(rough >= kept.least - 1e-5)
        exact = (block[one].astype(np.float64) * vectors[start + two]).sum(axis=1)
        kept.add(one + start, two + start, np.round(exact, 6))
    tick(len(vectors), len(vectors))


def _by_graph(corpus: Corpus, rows: Sequence[int], kept: _Kept, tick: Tick) -> None:
    """Collect the pairs among each passage's nearest ones, each pair once."""
    place = {row: at for at, row in enumerate(rows)}
    met: set[tuple[int, int]] = set()
    for start in range(0, len(rows), BLOCK):
        tick(start, len(rows))
        some = rows[start : start + BLOCK]
        found = {
            (min(place[row], place[other]), max(place[row], place[other]))
            for row, near in zip(some, corpus.neighbours(some, NEIGHBOURS + 1), strict=True)
            for other, score in near
            if other != row and other in place and score >= kept.least - 1e-5
        } - met
        if found:
            met |= found
            pairs = np.array(sorted(found), np.int64)
            one, two = (corpus.vectors([rows[at] for at in side]).astype(np.float64) for side in pairs.T)
            kept.add(pairs[:, 0], pairs[:, 1], np.round((one * two).sum(axis=1), 6))
    tick(len(rows), len(rows))


def _by_words(texts: Sequence[str], kept: _Kept, tick: Tick) -> None:
    """All pairs by prefix filtering: with shingles ordered by how rare they are, two sets of Jaccard t or
    more share one among the first |x| - ceil(t |x|) + 1 of each.

    Source: Chaudhuri, Ganti, Kaushik 2006, "A Primitive Operator for Similarity Joins in Data Cleaning",
    doi:10.1109/ICDE.2006.9, section 4; Bayardo, Ma, Srikant 2007, doi:10.1145/1242572.1242591.
    """
    tick(0, len(texts))
    owners, shingles, sizes = _shingled(texts)
    if not len(owners):
        return
    frequency = np.bincount(shingles)
    rarity = np.empty_like(frequency)
    rarity[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    order = np.lexsort((rarity[shingles], owners))
    owners, shingles = owners[order], shingles[order]
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    place = np.arange(len(owners)) - starts[owners]
    prefix = sizes - np.ceil(kept.least * sizes - 1e-9).astype(np.int64) + 1
    shared = frequency[shingles] > 1  # nobody shares a shingle that occurs once
    whole = _incidence(owners[shared], shingles[shared], len(texts), len(frequency))
    first = shared & (place < prefix[owners])
    heads = _incidence(owners[first], shingles[first], len(texts), len(frequency))
    tails = heads.T.tocsc()
    for start in range(0, len(texts), BLOCK):
        tick(start, len(texts))
        met = (heads[start : start + BLOCK] @ tails).tocoo()
        one, two = met.row.astype(np.int64) + start, met.col.astype(np.int64)
        small, large = np.minimum(sizes[one], sizes[two]), np.maximum(sizes[one], sizes[two])
        ahead = (two > one) & (small >= kept.least * large - 1e-9)  # they share at most the smaller one
        one, two = one[ahead], two[ahead]
        for at in range(0, len(one), CHUNK):
            a, b = one[at : at + CHUNK], two[at : at + CHUNK]
            common = np.asarray(whole[a].multiply(whole[b]).sum(axis=1), np.float64).ravel()
            kept.add(a, b, common / (sizes[a] + sizes[b] - common))
    tick(len(texts), len(texts))


def _shingled(texts: Sequence[str]) -> tuple[Rows, Rows, Rows]:
    """(text, shingle) for each different shingle of each text, by text; and how many each text has.

    Shingles are numbers without collisions: of (first two words), then of (that, third word).
    """
    known: dict[str, int] = {}
    windows: list[Rows] = []
    owners: list[Rows] = []
    for row, text in enumerate(texts):
        words = [known.setdefault(word, len(known) + 1) for word in _WORD.findall(text.lower())]
        if not words:
            continue
        padded = np.array(words + [0] * (SHINGLE - len(words)), np.int64)  # fewer words are one shingle
        windows.append(np.lib.stride_tricks.sliding_window_view(padded, SHINGLE))
        owners.append(np.full(len(windows[-1]), row, np.int64))
    if not windows:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(len(texts), np.int64)
    columns = np.concatenate(windows)
    number = columns[:, 0]
    for column in columns.T[1:]:
        _, number = np.unique(number * (len(known) + 1) + column, return_inverse=True)
    both = np.unique(np.concatenate(owners) * (int(number.max()) + 1) + number)
    owner, shingle = np.divmod(both, int(number.max()) + 1)
    return owner, shingle, np.bincount(owner, minlength=len(texts))


def _incidence(rows: Rows, columns: Rows, height: int, width: int) -> csr_matrix:
    return csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), (height, width))


def count(number: int, one: str, many: str) -> str:
    """Format a number with its unit: "1 pair", "31 pairs", "no pairs"."""
    return f"{number:,} {one if number == 1 else many}" if number else f"no {many}"
