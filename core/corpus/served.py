"""A corpus whose passages and vectors are in PostgreSQL: where it is, how it is read and put there.

Its BM25 index stays in the home folder: PostgreSQL's own ranking of words is another one. So does its record,
with the address but never a password.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.backends.pgvector import PgVectorIndex, StoredVectors
from core.backends.postgres import Connection, PostgresServer
from core.backends.sparse import BM25Index
from core.corpus import manifest, served_tables
from core.corpus.corpus import Corpus
from core.corpus.passages import KEPT, Listed, PassageStore, Stored
from core.corpus.types import Document
from core.domain.errors import IndexDamaged, Unavailable
from core.domain.once import Recent
from core.domain.postgres import Dsn, escaped, unescaped
from core.domain.program import COMMAND
from core.domain.settings import Settings
from core.domain.types import Passage

if TYPE_CHECKING:
    from psycopg.sql import Composable

    from core.backends.base import Matrix
    from core.corpus.stages import Stages

SAMPLE, SAMPLE_S = 200, 60.0  # passages used as questions to measure recall, and the longest it may take
AT_ONCE = 500  # rows fetched together
LOOK_S = 1.0  # between two looks at how far an index is
_given: dict[str, Dsn] = {}  # addresses that this process was given with a password, by the one without


def remember(address: str) -> str:
    """Keep an address with its password while this process lasts; the address without it. BadInput."""
    dsn = Dsn(address)
    _given[dsn.plain()] = dsn
    return dsn.plain()


def dsn_of(name: str, place: str, settings: Settings) -> Dsn:
    """Return the address of a corpus with its known password: from [corpora.NAME], this command or the
    setting `database`. Without one PostgreSQL's client reads PGPASSWORD and ~/.pgpass.
    """
    own = settings.corpora.get(name)
    known = [Dsn(own.dsn.get_secret_value())] if own else []
    known += [_given[place]] if place in _given else []
    known += [Dsn(settings.database.get_secret_value())] if settings.database else []
    return next((one for one in known if one.plain() == place), Dsn(place))


_servers: dict[Dsn, PostgresServer] = {}


def server_of(dsn: Dsn) -> PostgresServer:
    """Return the connections to a database, one set per process."""
    return _servers.setdefault(dsn, PostgresServer(dsn))


def let_go() -> None:
    """Close the connections to all databases that nobody uses now."""
    for server in list(_servers.values()):
        server.close()


@dataclass(frozen=True)
class Shape:
    """The SQL parts for reading passages."""

    relation: Composable
    select: Composable  # key, id, document, title, text, start, end
    key: Composable
    match: Composable  # key among a list
    meta: Composable
    documents: Composable | None  # lists and finds documents; None if each passage is one


class ServedPassages(Stored):
    """The passages of a corpus in PostgreSQL, as `PassageStore` has those of a file. Safe in threads."""

    def __init__(self, server: PostgresServer, shape: Shape) -> None:
        self._server, self._shape = server, shape
        self._passages: Recent[int, Passage] = Recent(KEPT)
        self._rows: Recent[str, int] = Recent(KEPT)

    def close(self) -> None:
        """Let go of the connections that nobody uses."""
        self._server.close()

    def at(self, rows: Sequence[int]) -> dict[int, Passage]:
        """Return the passages of `rows` by row."""
        found = {row: passage for row in rows if (passage := self._passages.get(row)) is not None}
        wanted = [row for row in rows if row not in found]
        keys = self._keys(wanted)
        for start in range(0, len(keys), AT_ONCE):
            found.update(self._read("{match}", (keys[start : start + AT_ONCE],)))
        return found

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Return the passages of `ids` by id; unknown ones are omitted."""
        return {passage.id: passage for passage in self.at(self._rows_of(ids)).values()}

    def row(self, id: str) -> int | None:
        """Return the row of a passage, or None if the id is unknown."""
        return next(iter(self._rows_of([id])), None)

    def document(self, id: str) -> tuple[Document, list[Passage]] | None:
        """Return a document with its passages in order, or None if the id is unknown."""
        shape = self._shape
        found = self._fetch(
            "SELECT title, text, meta FROM {documents} WHERE id = %s",
            (escaped(id),),
            documents=shape.documents,
        )
        if not found:
            return None
        title, text, meta = found[0]
        pieces = [one for _, one in self._read("document = %s ORDER BY start", (escaped(id),))]
        return Document(id, unescaped(title), unescaped(text), metadata(meta)), pieces

    def spanning(self, document: str, start: int, end: int) -> list[Passage]:
        """Return the passages of a document with characters in [start, end), in order."""
        where = "document = %s AND start < %s AND stop > %s ORDER BY start"
        return [one for _, one in self._read(where, (escaped(document), end, start))]

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        """Up to `limit` documents by id, from the one behind `after`, whose id or title holds `holding`."""
        sought = escaped(holding.strip())
        found = self._fetch(
            "SELECT d.id, d.title, (SELECT count(*) FROM {relation} p WHERE p.document = d.id),"
            " (SELECT max(p.stop) FROM {relation} p WHERE p.document = d.id) FROM {documents} d"
            " WHERE d.id > %s AND (strpos(lower(d.id), lower(%s)) > 0"
            " OR strpos(lower(d.title), lower(%s)) > 0)"
            " ORDER BY d.id LIMIT %s",
            (escaped(after), sought, sought, limit),
            documents=self._shape.documents,
        )
        return [Listed(unescaped(id), unescaped(title), count, stop or 0) for id, title, count, stop in found]

    def lengths(self) -> tuple[int, float, int]:
        """Return the minimum, mean and maximum length of a passage in characters; zeros without passages."""
        ((least, mean, greatest),) = self._fetch(
            "SELECT coalesce(min(stop - start), 0), coalesce(avg(stop - start), 0)::float8,"
            " coalesce(max(stop - start), 0) FROM {relation} AS p"
        )
        return least, mean, greatest

    def heads(self) -> Iterator[tuple[str, Mapping[str, str], str]]:
        """Each document's id and metadata, in the order of its first passage. Conditions are the server's,
        which knows no fields in texts: so no text.
        """
        seen: set[str] = set()
        for _, passage, meta in self.everything():
            if passage.doc_id not in seen:
                seen.add(passage.doc_id)
                yield passage.doc_id, meta, ""

    def owners(self) -> NDArray[np.int64]:
        """Return the number of each passage's document, as `heads` counts them, in the order of rows."""
        numbers: dict[str, int] = {}
        found = [numbers.setdefault(passage.doc_id, len(numbers)) for _, passage, _ in self.everything()]
        return np.array(found, np.int64)

    def everything(self) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
        """Every row with its passage and its document's metadata, in the order of rows."""
        from psycopg import sql

        shape = self._shape
        statement = sql.SQL("SELECT {select}, {meta} FROM {relation} AS p ORDER BY {key}").format(
            select=shape.select, meta=shape.meta, relation=shape.relation, key=shape.key
        )
        # A cursor of the server's, held past no transaction: texts come in portions.
        with self._server.streaming() as connection, connection.cursor(name="everything") as cursor:
            cursor.itersize = AT_ONCE
            for *found, meta in cursor.execute(statement, ()):
                yield self._row(found[0]), self._passage(found[1:]), metadata(meta)

    def size(self) -> tuple[int, int]:
        """Return the number of passages, and the bytes (UTF-8) of their texts and titles."""
        ((count, size),) = self._fetch(
            "SELECT count(*), coalesce(sum(octet_length(title) + 1 + octet_length(text)), 0)::bigint"
            " FROM {relation} AS p"
        )
        return count, size

    def _passage(self, found: Sequence[Any]) -> Passage:
        """Return a passage from the columns id, document, title, text, start, end."""
        id, document, title, text, start, end = found
        return Passage(unescaped(id), unescaped(document), unescaped(title), unescaped(text), start, end)

    def _keys(self, rows: Sequence[int]) -> list[Any]:
        return list(rows)

    def _row(self, key: Any) -> int:
        return int(key)

    def _rows_of(self, ids: Sequence[str]) -> list[int]:
        known = {id: row for id in ids if (row := self._rows.get(id)) is not None}
        others = [escaped(id) for id in ids if id not in known]
        if others:
            known |= {passage.id: row for row, passage in self._read("id = ANY(%s)", (others,))}
        return [known[id] for id in ids if id in known]

    def _read(self, where: str, values: tuple[Any, ...]) -> list[tuple[int, Passage]]:
        """Return the passages that match `where`, each with its row."""
        shape = self._shape
        rows = []
        for key, *rest in self._fetch(
            "SELECT {select} FROM {relation} AS p WHERE " + where,
            values,
            select=shape.select,
            match=shape.match,
        ):
            row, passage = self._row(key), self._passage(rest)
            self._passages[row] = passage
            self._rows[passage.id] = row
            rows.append((row, passage))
        return rows

    def _fetch(self, statement: str, values: tuple[Any, ...] = (), **parts: Any) -> list[Any]:
        from psycopg import sql

        said = sql.SQL(statement).format(relation=self._shape.relation, **parts)

        def read(connection: Connection) -> list[Any]:
            found: list[Any] = connection.execute(said, values).fetchall()
            return found

        return self._server.read(read)


def metadata(found: Any) -> dict[str, str]:
    """Metadata as text, whatever it was; what is empty is left out."""
    return {
        unescaped(str(name)): unescaped(value if isinstance(value, str) else json.dumps(value))
        for name, value in (found or {}).items()
        if value is not None
    }


def shape_of(tables: served_tables.Names) -> Shape:
    """Return the SQL for reading the passages of an index built here."""
    from psycopg import sql

    return Shape(
        relation=served_tables.relation(tables.passages),
        select=sql.SQL("row, id, document, title, text, start, stop"),
        key=sql.SQL("row"),
        match=sql.SQL("row = ANY(%s)"),
        meta=sql.SQL("meta"),
        documents=served_tables.relation(tables.documents),
    )


def passages_of(folder: Path, info: manifest.CorpusInfo, dsn: Dsn | None) -> PassageStore | ServedPassages:
    """Return the passages of an index, in a file or at `dsn`."""
    if not info.place:
        return PassageStore(folder / manifest.PASSAGES)
    server = server_of(dsn or Dsn(info.place))
    return ServedPassages(server, shape_of(served_tables.names(info.name, info.fingerprint)))


class ServedCorpus(Corpus):
    """An index whose passages and vectors are in PostgreSQL, opened. Raises Unavailable where it is gone."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        info = manifest.verify(folder)
        server = server_of(dsn_of(info.name, info.place, settings))
        tables = served_tables.names(info.name, info.fingerprint)
        known = server.read(lambda connection: served_tables.there(connection, info.name, info.fingerprint))
        if known is None:
            raise Unavailable(
                f"the tables of corpus {info.name} are no longer in {server.dsn}: "
                f"run {COMMAND} index {info.name}"
            )
        index = served_tables.index(
            server, tables, info.passages, info.dim, str(known["words"]), info.vector_index
        )
        words = BM25Index(folder / manifest.BM25, info.passages)
        self._open(info, ServedPassages(server, shape_of(tables)), StoredVectors(index), words, index)


class Place:
    """The database an index goes to."""

    def __init__(self, name: str, place: str, settings: Settings) -> None:
        self.name, self.place = name, place
        self.server = server_of(dsn_of(name, place, settings))

    def known(self, fingerprint: str) -> Mapping[str, Any] | None:
        """Return the record of a complete index in the database, or None."""
        return self.server.read(lambda c: served_tables.there(c, self.name, fingerprint))

    def vectors(self, info: manifest.CorpusInfo) -> Former | None:
        """Return the vectors of an earlier index, or None if it no longer exists."""
        known = self.known(info.fingerprint)
        if known is None:
            return None
        tables = served_tables.names(self.name, info.fingerprint)
        index = served_tables.index(self.server, tables, info.passages, info.dim, "simple", "flat")
        return Former(index, (info.passages, info.dim))

    def put(
        self,
        fingerprint: str,
        store: PassageStore,
        vectors: Matrix,
        language: str,
        approximate: bool,
        stages: Stages,
    ) -> tuple[float, int]:
        """Make the tables of an index in one transaction; the recall of its graph and its bytes.

        What is interrupted leaves nothing behind. Raises Unavailable, BadInput, Cancelled.
        """
        tables = served_tables.names(self.name, fingerprint)
        recall = 1.0
        with self.server.writing(stages.cancel) as connection:
            served_tables.prepare(connection, self.server)
            words = served_tables.configuration(connection, language.partition("/")[0])
            with stages.stage("send to PostgreSQL"):
                served_tables.fill(
                    connection, tables, _documents(store), store.everything(), vectors, words, stages.tick
                )
            with stages.stage("index words in PostgreSQL"):
                served_tables.keys(connection, tables)
            if approximate:
                count, dim = vectors.shape
                with stages.stage("index vectors"), self._watched(connection, stages):
                    served_tables.graph(connection, tables, dim, served_tables.memory_for(count, dim))
            size = served_tables.size(connection, tables)
            told = {"words": words, "recall": recall, "bytes": size, "dim": vectors.shape[1]}
            served_tables.record(connection, self.name, fingerprint, told)
        if approximate:
            with stages.stage("check"):
                recall = self._recall(tables, vectors)
            with self.server.writing() as connection:
                served_tables.record(connection, self.name, fingerprint, {**told, "recall": recall})
        return recall, size

    def clear(self, keep: str = "") -> None:
        """Delete the tables of this corpus but those of the index `keep`."""
        with self.server.writing() as connection:
            served_tables.drop(connection, self.name, keep)

    def _recall(self, tables: served_tables.Names, vectors: Matrix) -> float:
        count, dim = vectors.shape
        sample = np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False)
        index = served_tables.index(self.server, tables, count, dim, "simple", "hnsw")
        return index.recall(sample.tolist(), seconds=SAMPLE_S)

    @contextmanager
    def _watched(self, connection: Connection, stages: Stages) -> Iterator[None]:
        """Report the progress of the index as the server reports it."""
        ended, process = threading.Event(), connection.info.backend_pid

        def look() -> None:
            statement = "SELECT blocks_done, blocks_total FROM pg_stat_progress_create_index WHERE pid = %s"
            while not ended.wait(LOOK_S):
                try:
                    found = self.server.read(lambda c: c.execute(statement, (process,)).fetchone())
                except Unavailable:
                    return  # the connection that makes the index says so
                if found and found[1]:
                    stages.progress("index vectors", *found)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@dataclass(frozen=True)
class Former:
    """Vectors of an earlier index by rows, fetched when they are taken over."""

    index: PgVectorIndex
    shape: tuple[int, int]
    at_once: int = field(default=1_000)

    def __getitem__(self, rows: Any) -> Matrix:
        """Shape (n, dim)."""
        wanted = np.asarray(rows).tolist()
        parts = [
            self.index.vectors(wanted[start : start + self.at_once])
            for start in range(0, len(wanted), self.at_once)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), np.float32)


def _documents(store: PassageStore) -> Iterator[tuple[str, str, str, Mapping[str, str]]]:
    """Every document once."""
    after = ""
    while listed := store.documents(after=after, limit=AT_ONCE):
        for one in listed:
            found = store.document(one.id)
            if found is None:
                raise IndexDamaged(f"document {one.id!r} went missing while it was sent")
            document = found[0]
            yield document.id, document.title, document.text, document.meta
        after = listed[-1].id
