"""A corpus whose passages and vectors are in PostgreSQL: where it is, how it is read and put there.

Its BM25 index stays in the home folder: PostgreSQL's own ranking of words is another one. So does its record,
with the address but never a password.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.backends.base import Matrix
from core.backends.pgvector import WORDS_OF, PassageTable, PgVectorIndex, literal, quoted
from core.backends.postgres import VECTOR_EXTENSION, Connection, PostgresServer
from core.backends.sparse import BM25Index
from core.corpus import manifest
from core.corpus.corpus import Corpus
from core.corpus.passages import KEPT, Listed, PassageStore, Stored
from core.corpus.stages import Stages
from core.corpus.types import DenseWeight, Document
from core.domain.errors import BadInput, Unavailable
from core.domain.once import Recent
from core.domain.postgres import Dsn, escaped, unescaped
from core.domain.program import COMMAND
from core.domain.settings import Settings
from core.domain.types import Passage

if TYPE_CHECKING:
    from psycopg.sql import Composable

SCHEMA = "routescope_corpora"
LINKS, BUILD_EFFORT = 32, 120  # of the HNSW graph, as of the local one: with pgvector's usual 16 and 64 a
# million passages have a recall@10 of .92 at the greatest ef_search there is
MOST_DIMENSIONS = 2_000  # that pgvector's HNSW takes
MOST_MEMORY_MB = 4_096  # for a graph while it is built
LOCK = 0x52745349  # key of the advisory lock under which indexes are made
Tick = Callable[[int, int], None]
Documents = Iterable[tuple[str, str, str, Mapping[str, str]]]  # id, title, text, metadata
Passages = Iterable[tuple[int, Passage, Mapping[str, str]]]
SAMPLE, SAMPLE_S = 200, 60.0  # passages used as questions to measure recall, and the longest it may take
AT_ONCE = 500  # rows fetched together
COLUMNS = "{key}, id, document, title, text, start, stop"  # of a passage
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


def compose(statement: str, **parts: Composable | int | str) -> Composable:
    """Return a statement whose {fields} are SQL, or a number or text that becomes a literal."""
    from psycopg import sql

    made = {name: sql.Literal(one) if isinstance(one, int | str) else one for name, one in parts.items()}
    return sql.SQL(statement).format(**made)


class ServedPassages(Stored):
    """The passages of a corpus in PostgreSQL, as `PassageStore` has those of a file. Safe in threads."""

    def __init__(self, server: PostgresServer, table: PassageTable) -> None:
        self._server, self._table = server, table
        self._passages: Recent[int, Passage] = Recent(KEPT)
        self._rows: Recent[str, int] = Recent(KEPT)

    def close(self) -> None:
        """Let go of the connections that nobody uses."""
        self._server.close()

    def document(self, id: str) -> tuple[Document, list[Passage]] | None:
        """Return a document with its passages in order, or None if the id is unknown."""
        statement = "SELECT title, text, meta FROM {documents} WHERE id = %s"
        found = self._fetch(statement, (escaped(id),))
        if not found:
            return None
        title, text, meta = found[0]
        pieces = [one for _, one in self._found("document = %s ORDER BY start", (escaped(id),))]
        return Document(id, unescaped(title), unescaped(text), metadata(meta)), pieces

    def spanning(self, document: str, start: int, end: int) -> list[Passage]:
        """Return the passages of a document with characters in [start, end), in order."""
        where = "document = %s AND start < %s AND stop > %s ORDER BY start"
        return [one for _, one in self._found(where, (escaped(document), end, start))]

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        """Up to `limit` documents by id, from the one behind `after`, whose id or title holds `holding`."""
        sought = escaped(holding.strip())
        found = self._fetch(
            "SELECT d.id, d.title, (SELECT count(*) FROM {relation} WHERE p.document = d.id),"
            " (SELECT max(p.stop) FROM {relation} WHERE p.document = d.id) FROM {documents} d"
            " WHERE d.id > %s AND (strpos(lower(d.id), lower(%s)) > 0"
            " OR strpos(lower(d.title), lower(%s)) > 0)"
            " ORDER BY d.id LIMIT %s",
            (escaped(after), sought, sought, limit),
        )
        return [Listed(unescaped(id), unescaped(title), count, stop or 0) for id, title, count, stop in found]

    def lengths(self) -> tuple[int, float, int]:
        """Return the minimum, mean and maximum length of a passage in characters; zeros without passages."""
        ((least, mean, greatest),) = self._fetch(
            "SELECT coalesce(min(stop - start), 0), coalesce(avg(stop - start), 0)::float8,"
            " coalesce(max(stop - start), 0) FROM {relation}"
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
        statement = self._statement(f"SELECT {COLUMNS}, meta FROM {{relation}} ORDER BY {{key}}")
        # A cursor of the server's, held past no transaction: texts come in portions.
        with self._server.streaming() as connection, connection.cursor(name="everything") as cursor:
            cursor.itersize = AT_ONCE
            for *found, meta in cursor.execute(statement, ()):
                yield int(found[0]), self._passage(found[1:]), metadata(meta)

    def size(self) -> tuple[int, int]:
        """Return the number of passages, and the bytes (UTF-8) of their texts and titles."""
        ((count, size),) = self._fetch(
            "SELECT count(*), coalesce(sum(octet_length(title) + 1 + octet_length(text)), 0)::bigint"
            " FROM {relation}"
        )
        return count, size

    def _passage(self, found: Sequence[Any]) -> Passage:
        """Return a passage from the columns id, document, title, text, start, end."""
        id, document, title, text, start, end = found
        return Passage(unescaped(id), unescaped(document), unescaped(title), unescaped(text), start, end)

    def _read(self, by: Literal["row", "id"], values: Sequence[Any]) -> list[tuple[int, Passage]]:
        if by == "row":
            return self._found("{match}", (self._table.key_of(values),))
        return self._found("id = ANY(%s)", (list(map(escaped, values)),))

    def _found(self, where: str, values: tuple[Any, ...]) -> list[tuple[int, Passage]]:
        """Return the passages that match `where`, each with its row."""
        found = self._fetch(f"SELECT {COLUMNS} FROM {{relation}} WHERE {where}", values)
        rows = self._table.row_of([key for key, *_ in found])
        passages = (self._passage(rest) for _, *rest in found)
        return [(row, one) for row, one in zip(rows, passages, strict=True) if row is not None]

    def _fetch(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        made = self._statement(statement)
        return self._server.read(lambda c: c.execute(made, values).fetchall())

    def _statement(self, text: str) -> Composable:
        table = self._table
        parts = {"relation": table.relation, "key": table.key, "match": table.match}
        return compose(text, **parts, **({"documents": table.documents} if table.documents else {}))


def metadata(found: Any) -> dict[str, str]:
    """Metadata as text, whatever it was; what is empty is left out."""
    return {
        unescaped(str(name)): unescaped(value if isinstance(value, str) else json.dumps(value))
        for name, value in (found or {}).items()
        if value is not None
    }


class IndexTables:
    """The tables of one index: PostgreSQL allows names of 63 bytes, a corpus' name has up to 80."""

    def __init__(self, corpus: str, fingerprint: str) -> None:
        key = f"{hashlib.sha256(corpus.encode()).hexdigest()[:8]}_{fingerprint}"
        self.passages, self.documents = f"passages_{key}", f"documents_{key}"
        self.parts = {"p": quoted(SCHEMA, self.passages), "d": quoted(SCHEMA, self.documents)}

    def table(self, dim: int = 0, language: str = "simple", kind: str = "flat") -> PassageTable:
        """Return the SQL of the passages; `kind` is "hnsw", or "flat" for exact search."""
        return PassageTable(
            relation=compose("{p} AS p", p=self.parts["p"]),
            key=quoted("row"),
            match=compose("row = ANY(%s)"),
            vector=quoted("vector"),
            dim=dim,
            row_of=list,
            key_of=list,
            index="hnsw" if kind == "hnsw" else "",
            meta=lambda name: (compose("(meta ->> {name})", name=literal(name)), True),
            words=quoted("words"),
            language=language,
            documents=self.parts["d"],
        )


def _has_indexes(connection: Connection) -> bool:
    table = f"{SCHEMA}.indexes"
    return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()[0] is not None


def record_of(connection: Connection, corpus: str, fingerprint: str) -> Mapping[str, Any] | None:
    """Return the record of a complete index, or None."""
    if not _has_indexes(connection):
        return None
    statement = f"SELECT info FROM {SCHEMA}.indexes WHERE name = %s AND fingerprint = %s"
    found = connection.execute(statement, (corpus, fingerprint)).fetchone()
    return dict(found[0]) if found else None


def prepare(connection: Connection, server: PostgresServer) -> None:
    """Our schema, the extension and the table of indexes, unless they are there; one process at a time."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        known = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if not connection.execute(known).fetchone():
            raise Unavailable(
                f"the server of {server.dsn} has no pgvector: install it there (https://github.com/pgvector/"
                "pgvector), then run this again"
            )
        from psycopg import errors

        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION vector")
        except errors.InsufficientPrivilege:
            raise Unavailable(
                f"pgvector is not switched on in {server.dsn}, and its role may not: {VECTOR_EXTENSION}"
            ) from None
    if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone():
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {SCHEMA}.indexes (name text NOT NULL, fingerprint text NOT NULL,"
        " info jsonb NOT NULL, made timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (name, fingerprint))"
    )


def configuration(connection: Connection, language: str) -> str:
    """PostgreSQL's text search configuration of a language; "simple", words as they are, for others."""
    found = connection.execute("SELECT 1 FROM pg_ts_config WHERE cfgname = %s", (language,)).fetchone()
    return language if found else "simple"


def fill(
    connection: Connection,
    tables: IndexTables,
    documents: Documents,
    passages: Passages,
    vectors: Matrix,
    language: str,
    tick: Tick,
) -> None:
    """Make the tables and put all into them; `vectors`, shape (n, dim), in the order of rows."""
    count, dim = vectors.shape
    parts: dict[str, Any] = {**tables.parts, "dim": dim, "language": language, "most": WORDS_OF}
    for statement in (
        "DROP TABLE IF EXISTS {p}, {d}",
        'CREATE TABLE {d} (id text COLLATE "C" NOT NULL, title text NOT NULL, text text NOT NULL,'
        " meta jsonb NOT NULL)",
        'CREATE TABLE {p} (row int NOT NULL, id text COLLATE "C" NOT NULL, document text COLLATE "C"'
        " NOT NULL, title text NOT NULL, text text NOT NULL, start int NOT NULL, stop int NOT NULL,"
        " meta jsonb NOT NULL, vector vector({dim}) NOT NULL, words tsvector GENERATED ALWAYS AS"
        " (to_tsvector({language}::regconfig, left(title || ' ' || text, {most}))) STORED)",
    ):
        connection.execute(compose(statement, **parts))

    def records() -> Iterator[tuple[Any, ...]]:
        head = struct.pack(">HH", dim, 0)
        for row, passage, meta in passages:
            tick(row, count)
            texts = map(escaped, (passage.id, passage.doc_id, passage.title, passage.text))
            vector = head + vectors[row].astype(">f4").tobytes()
            yield row, *texts, passage.start, passage.end, _json(meta), vector

    texts = ((escaped(id), escaped(title), escaped(text), _json(meta)) for id, title, text, meta in documents)
    # A copy in binary form takes a third of the time of text for vectors. "bytea": bytes as they are.
    for table, columns, kinds, rows in (
        ("{d}", "id, title, text, meta", "text text text bytea", texts),
        (
            "{p}",
            "row, id, document, title, text, start, stop, meta, vector",
            "int4 text text text text int4 int4 bytea bytea",
            records(),
        ),
    ):
        copying = compose(f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)", **tables.parts)
        with connection.cursor() as cursor, cursor.copy(copying) as copy:
            copy.set_types(kinds.split())
            for row in rows:
                copy.write_row(row)
    tick(count, count)


def add_keys(connection: Connection, tables: IndexTables) -> None:
    """Create the indexes for finding passages by row, id, document, word and metadata."""
    for statement in (
        "ALTER TABLE {p} ADD PRIMARY KEY (row)",
        "CREATE UNIQUE INDEX ON {p} (id)",
        "CREATE INDEX ON {p} (document, start)",
        "CREATE INDEX ON {p} USING gin (words)",
        "ALTER TABLE {d} ADD PRIMARY KEY (id)",
        "ANALYZE {p}, {d}",
    ):
        connection.execute(compose(statement, **tables.parts))


def add_graph(connection: Connection, tables: IndexTables, dim: int, memory_mb: int) -> None:
    """Create the HNSW graph of the vectors."""
    if dim > MOST_DIMENSIONS:
        raise BadInput(
            f"vectors of {dim} dimensions: pgvector's HNSW takes {MOST_DIMENSIONS} at most; raise "
            "the setting exact_below above the number of passages to search exactly"
        )
    connection.execute("SELECT set_config('maintenance_work_mem', %s, true)", (f"{memory_mb}MB",))
    how = "CREATE INDEX ON {p} USING hnsw (vector vector_ip_ops) WITH (m = {m}, ef_construction = {effort})"
    connection.execute(compose(how, p=tables.parts["p"], m=LINKS, effort=BUILD_EFFORT))


def activate(connection: Connection, corpus: str, fingerprint: str, info: Mapping[str, Any]) -> None:
    """Activate an index: it exists from the commit on."""
    connection.execute(
        f"INSERT INTO {SCHEMA}.indexes (name, fingerprint, info) VALUES (%s, %s, %s)"
        " ON CONFLICT (name, fingerprint) DO UPDATE SET info = excluded.info, made = now()",
        (corpus, fingerprint, json.dumps(info)),
    )


def table_size(connection: Connection, tables: IndexTables) -> int:
    """Return the bytes on the server, indexes included."""
    found: int = connection.execute(
        "SELECT coalesce(sum(pg_total_relation_size(c)), 0)::bigint FROM unnest(%s::regclass[]) AS c",
        ([f"{SCHEMA}.{tables.passages}", f"{SCHEMA}.{tables.documents}"],),
    ).fetchone()[0]
    return found


def _json(meta: Mapping[str, str]) -> bytes:
    kept = {escaped(name): escaped(value) for name, value in meta.items()}
    return b"\x01" + json.dumps(kept, ensure_ascii=False).encode()


def passages_of(folder: Path, info: manifest.CorpusInfo, dsn: Dsn | None) -> PassageStore | ServedPassages:
    """Return the passages of an index, in a file or at `dsn`."""
    if not info.place:
        return PassageStore(folder / manifest.PASSAGES)
    server = server_of(dsn or Dsn(info.place))
    return ServedPassages(server, IndexTables(info.name, info.fingerprint).table())


class ServedCorpus(Corpus):
    """An index whose passages and vectors are in PostgreSQL, opened. Raises Unavailable where it is gone."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        info = manifest.verify(folder)
        server = server_of(dsn_of(info.name, info.place, settings))
        tables = IndexTables(info.name, info.fingerprint)
        known = server.read(lambda connection: record_of(connection, info.name, info.fingerprint))
        if known is None:
            raise Unavailable(
                f"the tables of corpus {info.name} are no longer in {server.dsn}: "
                f"run {COMMAND} index {info.name}"
            )
        table = tables.table(info.dim, str(known["words"]), info.vector_index)
        index = PgVectorIndex(server, table, info.passages)
        words = BM25Index(folder / manifest.BM25, info.passages)
        self._open(info, ServedPassages(server, table), index, words, index)


class Place:
    """The database an index goes to."""

    def __init__(self, name: str, place: str, settings: Settings) -> None:
        self.name, self.place = name, place
        self.server = server_of(dsn_of(name, place, settings))

    def known(self, fingerprint: str) -> Mapping[str, Any] | None:
        """Return the record of a complete index in the database, or None."""
        return self.server.read(lambda c: record_of(c, self.name, fingerprint))

    def vectors(self, info: manifest.CorpusInfo) -> PgVectorIndex | None:
        """Return the vectors of an earlier index by rows, or None if it no longer exists."""
        if self.known(info.fingerprint) is None:
            return None
        table = IndexTables(self.name, info.fingerprint).table(info.dim)
        return PgVectorIndex(self.server, table, info.passages)

    def put(
        self,
        fingerprint: str,
        store: PassageStore,
        vectors: Matrix,
        language: str,
        approximate: bool,
        dense_weight: DenseWeight,
        stages: Stages,
    ) -> tuple[float, int]:
        """Make the tables of an index in one transaction, with its `dense_weight`; return the recall of its
        graph and its bytes.

        What is interrupted leaves nothing behind. Raises Unavailable, BadInput, Cancelled.
        """
        tables, recall = IndexTables(self.name, fingerprint), 1.0
        count, dim = vectors.shape
        with self.server.writing(stages.cancel) as connection:
            prepare(connection, self.server)
            words = configuration(connection, language.partition("/")[0])
            with stages.stage("send to PostgreSQL"):
                documents = ((one.id, one.title, one.text, one.meta) for one, _ in store.whole())
                fill(connection, tables, documents, store.everything(), vectors, words, stages.tick)
            with stages.stage("index words in PostgreSQL"):
                add_keys(connection, tables)
            if approximate:
                # A graph that does not fit into memory takes many times as long to build.
                memory = int(min(MOST_MEMORY_MB, max(64, count * (4 * dim + 500) * 1.2 / 2**20)))
                with stages.stage("index vectors"):
                    add_graph(connection, tables, dim, memory)
            size = table_size(connection, tables)
            told = {"words": words, "recall": recall, "bytes": size, "dim": dim}
            told["dense_weight"] = asdict(dense_weight)
            activate(connection, self.name, fingerprint, told)
        if approximate:
            with stages.stage("check"):
                sample = np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False)
                index = PgVectorIndex(self.server, tables.table(dim, kind="hnsw"), count)
                recall = index.recall(sample.tolist(), seconds=SAMPLE_S)
            with self.server.writing() as connection:
                activate(connection, self.name, fingerprint, {**told, "recall": recall})
        return recall, size

    def clear(self, keep: str = "") -> None:
        """Delete the tables of this corpus but those of the index `keep`."""
        with self.server.writing() as connection:
            if not _has_indexes(connection):
                return
            gone = f"DELETE FROM {SCHEMA}.indexes WHERE name = %s AND fingerprint <> %s RETURNING fingerprint"
            for (fingerprint,) in connection.execute(gone, (self.name, keep)).fetchall():
                parts = IndexTables(self.name, fingerprint).parts
                connection.execute(compose("DROP TABLE IF EXISTS {p}, {d}", **parts))
