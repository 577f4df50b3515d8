"""The tables of an index in PostgreSQL: made in one transaction, so that an index is there as a whole or not
at all.

They stand in a schema of their own. Passages carry their document's title and metadata, so that a search
reads one table.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.backends.base import Matrix
from core.backends.pgvector import WORDS_OF, PassageTable, PgVectorIndex, literal
from core.backends.postgres import VECTOR_EXTENSION, Connection, PostgresServer
from core.domain.errors import BadInput, Unavailable
from core.domain.postgres import escaped
from core.domain.types import Passage

if TYPE_CHECKING:
    from psycopg.sql import Composable

SCHEMA = "routescope_corpora"
LINKS, BUILD_EFFORT = 32, 120  # of the HNSW graph, as of the local one: with pgvector's usual 16 and 64 a
# million passages have a recall@10 of .92 at the greatest ef_search there is
MOST_DIMENSIONS = 2_000  # that pgvector's HNSW takes
MOST_MEMORY_MB = 4_096  # for a graph while it is built
LOCK = 0x52745349  # key of the advisory lock under which indexes are made
BATCH = 1_000  # passages sent together
Tick = Callable[[int, int], None]
Documents = Iterable[tuple[str, str, str, Mapping[str, str]]]  # id, title, text, metadata
Passages = Iterable[tuple[int, Passage, Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Names:
    """The tables of one index."""

    passages: str
    documents: str


def names(corpus: str, fingerprint: str) -> Names:
    """Return the names of an index' tables: PostgreSQL allows 63 bytes, a corpus' name up to 80."""
    key = f"{hashlib.sha256(corpus.encode()).hexdigest()[:8]}_{fingerprint}"
    return Names(f"passages_{key}", f"documents_{key}")


def relation(table: str) -> Composable:
    """Quote one of our tables."""
    from psycopg import sql

    return sql.Identifier(SCHEMA, table)


def there(connection: Connection, corpus: str, fingerprint: str) -> Mapping[str, Any] | None:
    """Return the record of a complete index, or None."""
    if connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.indexes",)).fetchone()[0] is None:
        return None
    found = connection.execute(
        f"SELECT info FROM {SCHEMA}.indexes WHERE name = %s AND fingerprint = %s", (corpus, fingerprint)
    ).fetchone()
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
    tables: Names,
    documents: Documents,
    passages: Passages,
    vectors: Matrix,
    language: str,
    tick: Tick,
) -> None:
    """Make the tables and put all into them; `vectors`, shape (n, dim), in the order of rows."""
    from psycopg import sql

    dim = vectors.shape[1]
    passage_table, document_table = relation(tables.passages), relation(tables.documents)
    for table in (passage_table, document_table):
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    connection.execute(
        sql.SQL(
            'CREATE TABLE {} (id text COLLATE "C" NOT NULL, title text NOT NULL, text text NOT NULL,'
            " meta jsonb NOT NULL)"
        ).format(document_table)
    )
    connection.execute(
        sql.SQL(
            'CREATE TABLE {} (row int NOT NULL, id text COLLATE "C" NOT NULL, document text COLLATE "C"'
            " NOT NULL, title text NOT NULL, text text NOT NULL, start int NOT NULL, stop int NOT NULL,"
            " meta jsonb NOT NULL, vector vector({}) NOT NULL, words tsvector GENERATED ALWAYS AS"
            " (to_tsvector({}::regconfig, left(title || ' ' || text, {}))) STORED)"
        ).format(passage_table, sql.Literal(dim), sql.Literal(language), sql.Literal(WORDS_OF))
    )
    rows = (_record(_text(id), _text(title), _text(text), _json(meta)) for id, title, text, meta in documents)
    _copied(connection, document_table, "id, title, text, meta", rows)
    count = len(vectors)
    head = struct.pack(">HH", dim, 0)

    def records() -> Iterator[bytes]:
        for row, passage, meta in passages:
            tick(row, count)
            yield _record(
                struct.pack(">i", row),
                _text(passage.id),
                _text(passage.doc_id),
                _text(passage.title),
                _text(passage.text),
                struct.pack(">i", passage.start),
                struct.pack(">i", passage.end),
                _json(meta),
                head + vectors[row].astype(">f4").tobytes(),
            )

    _copied(connection, passage_table, "row, id, document, title, text, start, stop, meta, vector", records())
    tick(count, count)


def keys(connection: Connection, tables: Names) -> None:
    """Create the indexes for finding passages by row, id, document, word and metadata."""
    from psycopg import sql

    passages, documents = relation(tables.passages), relation(tables.documents)
    for statement in (
        "ALTER TABLE {p} ADD PRIMARY KEY (row)",
        "CREATE UNIQUE INDEX ON {p} (id)",
        "CREATE INDEX ON {p} (document, start)",
        "CREATE INDEX ON {p} USING gin (words)",
        "ALTER TABLE {d} ADD PRIMARY KEY (id)",
    ):
        connection.execute(sql.SQL(statement).format(p=passages, d=documents))
    for table in (passages, documents):
        connection.execute(sql.SQL("ANALYZE {}").format(table))


def graph(connection: Connection, tables: Names, dim: int, memory_mb: int) -> None:
    """Create the HNSW graph of the vectors."""
    from psycopg import sql

    if dim > MOST_DIMENSIONS:
        raise BadInput(
            f"vectors of {dim} dimensions: pgvector's HNSW takes {MOST_DIMENSIONS} at most; raise "
            "the setting exact_below above the number of passages to search exactly"
        )
    connection.execute("SELECT set_config('maintenance_work_mem', %s, true)", (f"{memory_mb}MB",))
    connection.execute(
        sql.SQL(
            "CREATE INDEX ON {} USING hnsw (vector vector_ip_ops) WITH (m = {}, ef_construction = {})"
        ).format(relation(tables.passages), sql.Literal(LINKS), sql.Literal(BUILD_EFFORT))
    )


def record(connection: Connection, corpus: str, fingerprint: str, info: Mapping[str, Any]) -> None:
    """Activate an index: it exists from the commit on."""
    connection.execute(
        f"INSERT INTO {SCHEMA}.indexes (name, fingerprint, info) VALUES (%s, %s, %s)"
        " ON CONFLICT (name, fingerprint) DO UPDATE SET info = excluded.info, made = now()",
        (corpus, fingerprint, json.dumps(info)),
    )


def drop(connection: Connection, corpus: str, keep: str = "") -> list[str]:
    """Delete the indexes of a corpus but the one with fingerprint `keep`; the fingerprints deleted."""
    from psycopg import sql

    if connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.indexes",)).fetchone()[0] is None:
        return []
    gone = [
        fingerprint
        for (fingerprint,) in connection.execute(
            f"DELETE FROM {SCHEMA}.indexes WHERE name = %s AND fingerprint <> %s RETURNING fingerprint",
            (corpus, keep),
        ).fetchall()
    ]
    for fingerprint in gone:
        tables = names(corpus, fingerprint)
        for table in (tables.passages, tables.documents):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(relation(table)))
    return gone


def size(connection: Connection, tables: Names) -> int:
    """Return the bytes on the server, indexes included."""
    found: int = connection.execute(
        "SELECT coalesce(sum(pg_total_relation_size(c)), 0)::bigint FROM unnest(%s::regclass[]) AS c",
        ([f"{SCHEMA}.{tables.passages}", f"{SCHEMA}.{tables.documents}"],),
    ).fetchone()[0]
    return found


def memory_for(count: int, dim: int) -> int:
    """Megabytes of maintenance_work_mem that a graph needs to be built in memory, within bounds: one that
    does not fit takes many times as long.
    """
    return int(min(MOST_MEMORY_MB, max(64, count * (4 * dim + 500) * 1.2 / 2**20)))


def searched(tables: Names, dim: int, language: str, index: str) -> PassageTable:
    """Return the passages of an index for search; `index` is "hnsw", or "" for exact search."""
    from psycopg import sql

    return PassageTable(
        relation=relation(tables.passages),
        key=sql.Identifier("row"),
        match=sql.SQL("row = ANY(%s)"),
        vector=sql.Identifier("vector"),
        dim=dim,
        row_of=list,
        key_of=list,
        index=index,
        meta=lambda name: (sql.SQL("(meta ->> {})").format(literal(name)), True),
        words=sql.Identifier("words"),
        language=language,
    )


def index(
    server: PostgresServer, tables: Names, count: int, dim: int, language: str, kind: str
) -> PgVectorIndex:
    """Open the search of an index; `kind` is "hnsw" or "flat"."""
    return PgVectorIndex(server, searched(tables, dim, language, "hnsw" if kind == "hnsw" else ""), count)


def _copied(connection: Connection, table: Composable, columns: str, rows: Iterable[bytes]) -> None:
    """Send rows by COPY in its binary form, which takes a third of the time of text for vectors."""
    from psycopg import sql

    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(table, sql.SQL(columns))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
        waiting: list[bytes] = []
        for row in rows:
            waiting.append(row)
            if len(waiting) == BATCH:
                copy.write(b"".join(waiting))
                waiting.clear()
        copy.write(b"".join(waiting) + struct.pack(">h", -1))


def _record(*fields: bytes) -> bytes:
    return struct.pack(">h", len(fields)) + b"".join(
        part for one in fields for part in (struct.pack(">i", len(one)), one)
    )


def _text(text: str) -> bytes:
    return escaped(text).encode()


def _json(meta: Mapping[str, str]) -> bytes:
    kept = {escaped(name): escaped(value) for name, value in meta.items()}
    return b"\x01" + json.dumps(kept, ensure_ascii=False).encode()
