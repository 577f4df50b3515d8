"""An opened corpus: search by words and by vectors, and the passages found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from core.backends.admission import aside
from core.backends.base import Mask, Matrix, Rows, Vector
from core.backends.grep import SourceText
from core.backends.pgvector import PgVectorIndex
from core.backends.sparse import BM25Index, RankBM25Index, top_k
from core.backends.terms import Analyzer
from core.backends.vector import BLOCK, FaissIndex, Kind, QuantisedIndex
from core.corpus import manifest
from core.corpus.embeddings import VECTORS, mapped
from core.corpus.metadata import Metadata
from core.corpus.passages import Listed, PassageStore, Stored
from core.corpus.types import Document, FileRecord
from core.domain.errors import BadInput, Unavailable
from core.domain.filters import Filter
from core.domain.once import Once
from core.domain.program import COMMAND
from core.domain.text import composed, searchable
from core.domain.types import Hit, Passage, Ranking

if TYPE_CHECKING:
    from core.corpus.passage_matching import Matcher


def no_full_text(name: str) -> str:
    """Why a corpus has no search by ts_rank_cd, and how to get it."""
    return (
        f"corpus {name} is in files, and full-text search (ts_rank_cd) is PostgreSQL's: put it there with "
        f"{COMMAND} index {name} --in postgresql://USER@HOST/NAME"
    )


class Corpus:
    """A verified index; read only, safe to use from several threads. Equal scores come in the order of ids.

    `warnings` says what was wrong when it was opened and what was done about it.
    """

    folder: Path | None = None  # of the index

    def __init__(self, folder: Path, warnings: Sequence[str] = ()) -> None:
        """Open the index in `folder`; raises IndexDamaged when a file does not match its recorded sha256."""
        info = manifest.verify(folder)
        self.folder = folder
        vectors = mapped(folder / VECTORS)
        words = BM25Index(folder / manifest.BM25, info.passages)
        self._open(info, PassageStore(folder / manifest.PASSAGES), vectors, words, warnings=warnings)

    def _open(
        self,
        info: manifest.CorpusInfo,
        store: Stored,
        vectors: Matrix | PgVectorIndex,
        words: BM25Index | None,
        index: FaissIndex | PgVectorIndex | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        """Set the common attributes of every corpus, wherever its parts are; an index that is None is read on
        first use.
        """
        self.info = info
        self.name, self.fingerprint, self.size = info.name, info.fingerprint, info.passages
        self.warnings = tuple(warnings)
        self.chosen = False  # whether its embedder was chosen for it, and is not that of the setting
        self.by = ""  # the folder of vectors of another embedder; empty: its own
        self.base = self  # the corpus whose passages these are
        self._store, self._vectors, self._index, self._found_words = store, vectors, index, words
        self._made: Once[str, Any] = Once()  # what is read or computed on first use, by name

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """Return the passages of `rows`, in that order."""
        found = self._store.at(rows)
        if missing := [row for row in rows if row not in found]:
            raise BadInput(f"corpus {self.name} has no row {missing[0]}; rows go from 0 to {self.size - 1}")
        return [found[row] for row in rows]

    def everything(self) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
        """Every row with its passage and its document's metadata, in the order of rows."""
        return self._store.everything()

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Return the passages of `ids` by id; unknown ids are omitted."""
        found = self._store.by_ids(ids)
        others = {id: same for id in ids if id not in found and (same := composed(id)) != id}
        if others:
            known = self._store.by_ids(list(others.values()))
            found |= {id: known[same] for id, same in others.items() if same in known}
        return found

    def row(self, id: str) -> int:
        """Return the row of a passage; rows are sorted by id. Raises BadInput for an unknown id."""
        row = self._store.row(id)
        row = self._store.row(composed(id)) if row is None else row
        if row is None:
            raise BadInput(f"corpus {self.name} has no passage {id!r}")
        return row

    def document(self, id: str) -> tuple[Document, list[Passage]]:
        """Return a document and its passages in order. Raises BadInput for an unknown id."""
        found = self._store.document(id) or self._store.document(composed(id))
        if found is None:
            raise BadInput(f"corpus {self.name} has no document {id!r}")
        return found

    def whole(self) -> Iterator[tuple[Document, list[Passage]]]:
        """Yield every document with its passages in order, by id."""
        return self._store.whole()

    def has_document(self, id: str) -> bool:
        """Return True if the corpus has a document of that id."""
        return self._store.document(id) is not None

    @cached_property
    def readings(self) -> tuple[FileRecord, ...]:
        """Return how each file of the source was read; () for a corpus without files."""
        return manifest.readings(self.folder) if self.folder is not None else ()

    def spanning(self, document: str, start: int, end: int) -> list[Passage]:
        """Return the passages of a document with characters in [start, end), in order."""
        return self._store.spanning(document, start, end)

    @cached_property
    def matcher(self) -> Matcher:
        """Finds the passages that another pipeline returned among those of this corpus."""
        from core.corpus.passage_matching import Matcher

        return Matcher(self)

    @property
    def source_text(self) -> SourceText:
        """The passages' text with their titles, for `grep`; read once, which no route's time counts."""

        def read() -> SourceText:
            return SourceText(searchable(one.title, one.text) for _, one, _ in self.everything())

        with aside("the text is read"):
            found: SourceText = self._made.get("text", read)
        return found

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        """Up to `limit` documents by id, from the one behind `after`, whose id or title holds `holding`."""
        return self._store.documents(holding, after, limit)

    def lengths(self) -> tuple[int, float, int]:
        """Return the minimum, mean and maximum length of a passage in characters; zeros without passages."""
        return self._store.lengths()

    @cached_property
    def characters(self) -> int:
        """Of all passages together."""
        return round(self.size * self.lengths()[1])

    @cached_property
    def metadata(self) -> Metadata:
        """The fields that conditions can name."""
        return Metadata(self._store.heads())

    def allowed(self, where: Sequence[Filter]) -> Mask | None:
        """Return the mask of rows that meet every condition, shape (size,), or None without conditions.
        Raises BadInput for a field that no document has, or a value of another kind.
        """
        if not where:
            return None
        index = self._nearest()
        if isinstance(index, PgVectorIndex):
            found = np.zeros(self.size, np.bool_)
            found[index.meeting(where)] = True
            return found
        return self.metadata.meeting(where)[self._owners]

    def value(self, id: str, field: str) -> str | None:
        """Return the value of a field of a passage's document, or None. Raises BadInput for an unknown id."""
        return self.metadata.value(int(self._owners[self.row(id)]), field)

    def days(self, field: str) -> NDArray[np.float64]:
        """Return the day of each row's document in a date field, as an ordinal, shape (size,); NaN without
        one. Raises BadInput for a field without dates.
        """
        return self.metadata.days(field)[self._owners]

    @cached_property
    def _owners(self) -> NDArray[np.int64]:
        return self._store.owners()

    def search_sparse(
        self, text: str, k: int, engine: str = "bm25s", where: Sequence[Filter] = ()
    ) -> Ranking:
        """Return the `k` passages of highest BM25 score among those that meet every condition of `where`;
        those without a common term are not hits.

        `engine` computes it: "bm25s", the stored index, or "rank-bm25", built in memory on first use.
        """
        if engine not in ("bm25s", "rank-bm25"):
            raise BadInput(f"unknown BM25 engine {engine!r}; known: bm25s, rank-bm25")
        index: BM25Index | RankBM25Index = self._words
        if engine == "rank-bm25":
            words = self._words
            texts = self._store.texts
            index = self._made.get(engine, lambda: RankBM25Index(texts(), words.analyzer, words.k1, words.b))
        return self._hits(index.search(text, k, self.allowed(where)))

    def search_terms(
        self, terms: Mapping[str, float], k: int, told: int = 0, where: Sequence[Filter] = ()
    ) -> tuple[Ranking, list[tuple[str, list[tuple[str, float]]]]]:
        """Return the `k` passages with the highest weighted sum of the BM25 scores of `terms`, and, by id,
        each term's contribution for the first `told` of them.
        """
        rows = top_k(self._words.weighted(terms), k, self.allowed(where))
        hits = self._hits(rows)
        parts = [
            (hit.passage.id, self._words.parts(terms, row))
            for hit, (row, _) in zip(hits[:told], rows, strict=False)
        ]
        return hits, parts

    def search_coded(
        self, vector: Vector, kind: Kind, k: int, where: Sequence[Filter] = ()
    ) -> tuple[Ranking, int]:
        """Return the `k` passages whose coded vectors are nearest to `vector`, shape (dim,), and the bytes of
        all codes, which are computed on first use.
        """

        def code() -> QuantisedIndex:
            parts = (range(at, min(at + BLOCK, self.size)) for at in range(0, self.size, BLOCK))
            return QuantisedIndex(map(self.vectors, parts), self.info.dim, kind)

        codes: QuantisedIndex = self._made.get(kind, code)
        return self._hits(codes.search(vector, k, self.allowed(where))), codes.bytes

    def why_no_words(self, text: str) -> str:
        """Why no passage shares a term with `text`, as a clause."""
        return self._words.why_nothing(text)

    def search_dense(
        self,
        vector: Vector,
        k: int,
        where: Sequence[Filter] = (),
        *,
        exact: bool = False,
        effort: int = 0,
    ) -> Ranking:
        """Return the `k` passages nearest to `vector`, shape (dim,), by inner product, without approximation
        if `exact`, or by a graph at another `effort` (ef_search; 0 for the usual one). Only passages that
        meet every condition of `where` are found: then the search of a corpus in files is exact.
        """
        self._fits(vector)
        index = self._nearest()
        if isinstance(index, PgVectorIndex):
            if exact:
                return self._hits(index.search_exact(vector, k, where=where))
            return self._hits(index.search(vector, k, effort=effort, where=where))
        if not self.size:
            return ()
        if (allowed := self.allowed(where)) is not None:
            return self._hits(index.search_within(vector, k, allowed))
        return self._hits(index.search_exact(vector, k) if exact else index.search(vector, k, effort=effort))

    def search_full_text(self, text: str, k: int, where: Sequence[Filter] = ()) -> Ranking:
        """Return the `k` passages of highest ts_rank_cd, PostgreSQL's rank by the proximity of words, not
        BM25. Raises Unavailable if the corpus is not in PostgreSQL.
        """
        index = self._nearest()
        if not isinstance(index, PgVectorIndex):
            raise Unavailable(no_full_text(self.name))
        return self._hits(index.full_text(text, k, where))

    def search_dense_many(self, vectors: Matrix, k: int, where: Sequence[Filter] = ()) -> list[Ranking]:
        """`search_dense` for each of `vectors`, shape (n, dim): quicker than one after the other."""
        if not self.size:
            return [() for _ in vectors]
        self._fits(vectors)
        if where:
            return [self.search_dense(vector, k, where) for vector in vectors]
        return [self._hits(rows) for rows in self._nearest().search_many(vectors, k)]

    def explain(self, text: str, passage_id: str) -> dict[str, float]:
        """Return the contribution of each word of `text` to the BM25 score of a passage; they sum to the
        score.
        """
        return self._words.explain(text, self.row(passage_id))

    def bm25(self, text: str, rows: Sequence[int]) -> Vector:
        """Return the BM25 scores of `rows` for `text`, shape (n,); 0 for one without a common term."""
        return self._words.scores(text)[list(rows)]

    def bm25_place(self, text: str, passage_id: str) -> tuple[int, int]:
        """Return the BM25 rank of a passage for `text`, from 1 (0 if it has none), and how many passages have
        one.
        """
        return self._words.place(text, self.row(passage_id))

    def bm25_found(self, text: str) -> int:
        """Count the passages that share a term with `text`."""
        return self._words.having(self._words.scores(text))

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyzer that converts texts to terms."""
        return self._words.analyzer

    def idf(self, words: Sequence[str]) -> list[float]:
        """Return the weight of each word in BM25; 0 for one that does not count, such as a stop word."""
        return self._words.idf(words)

    def terms(self, text: str) -> list[tuple[str, float]]:
        """Return the terms of `text` for BM25, in order, repeats included, each with its IDF."""
        return self._words.terms(text)

    def neighbours(self, rows: Sequence[int], k: int) -> list[Rows]:
        """Return the `k` rows nearest to the vector of each of `rows`, ties in any order."""
        return self._nearest().near_many(self._vectors[list(rows)], k)

    def vectors(self, rows: Sequence[int]) -> Matrix:
        """Return the vectors of `rows`, shape (n, dim)."""
        return self._vectors[list(rows)]

    @property
    def _words(self) -> BM25Index:
        """Return the BM25 index. Raises Unavailable if the corpus has none."""
        if self._found_words is None:
            raise Unavailable(f"corpus {self.name} has no BM25 index")
        return self._found_words

    def _nearest(self) -> FaissIndex | PgVectorIndex:
        """Return the vector index, loaded on first use."""
        if self._index is not None:
            return self._index

        def load() -> FaissIndex:
            graph = self.folder / manifest.GRAPH if self.folder and self.info.vector_index == "hnsw" else None
            return FaissIndex(cast("Matrix", self._vectors), graph)  # others come with theirs

        found: FaissIndex | PgVectorIndex = self._made.get("nearest", load)
        return found

    def _fits(self, vectors: Matrix | Vector) -> None:
        if vectors.shape[-1] != self.info.dim:
            raise BadInput(
                f"a vector of {vectors.shape[-1]} dimensions cannot search corpus {self.name},"
                f" whose vectors ({self.info.embedder}) have {self.info.dim}"
            )

    def _hits(self, rows: Rows) -> Ranking:
        found = self._store.at([row for row, _ in rows])
        return tuple(Hit(found[row], score) for row, score in rows)


class Further(Corpus):
    """A corpus with the vectors of another embedder; passages and words are shared with it."""

    def __init__(self, base: Corpus, folder: Path) -> None:
        """Open the vectors in `folder`; raises IndexDamaged if a file does not match its recorded sha256."""
        info = manifest.verify(folder)
        self.folder = folder
        vectors = mapped(folder / VECTORS)
        self._open(info, base._store, vectors, base._words, warnings=base.warnings)
        self.base, self.by = base, folder.name
