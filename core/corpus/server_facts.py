"""The server of a corpus in PostgreSQL, for `doctor`: versions, kind of index, rights, clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from core.backends.postgres import Connection
from core.corpus import catalogue, served, table
from core.corpus.served import dsn_of, server_of
from core.domain.errors import Unavailable
from core.domain.settings import Settings

OLDEST = (0, 8)  # pgvector with iterative scans
CLOCKS_S = 60.0  # seconds that two clocks may differ


@dataclass(frozen=True, slots=True)
class Facts:
    """The findings about a server, and the remedy of a problem."""

    detail: str
    fix: str


def of(known: catalogue.Known, settings: Settings) -> Facts:
    """Look at the server of a corpus. Raises Unavailable where it cannot be reached or the corpus is gone."""
    if known.info is None:
        raise Unavailable(known.reason)
    dsn = dsn_of(known.name, known.info.place, settings)
    in_place = known.kind == "table"
    needed = "SELECT" if in_place else "SELECT, INSERT, DELETE"
    named = table.Table(known.name, settings).look().oid if in_place else None
    tables = served.IndexTables(known.name, known.info.fingerprint)

    def read(connection: Connection) -> tuple[Any, ...]:
        built = f"{served.SCHEMA}.{tables.passages}"
        (oid,) = connection.execute(
            "SELECT coalesce(%s, to_regclass(%s)::oid::bigint)", (named, built)
        ).fetchone()
        if oid is None:
            raise Unavailable(f"the tables of corpus {known.name} are no longer in {dsn}; index it again")
        row: tuple[Any, ...] = connection.execute(
            "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension"
            " WHERE extname = 'vector'), current_user, extract(epoch FROM clock_timestamp())::float8,"
            " has_table_privilege(%s::oid, %s), (SELECT string_agg(DISTINCT am.amname, ', ') FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam"
            " WHERE i.indrelid = %s AND am.amname IN ('hnsw', 'ivfflat') AND i.indisvalid)",
            (oid, needed, oid),
        ).fetchone()
        return row

    version, pgvector, role, clock, may, kinds = server_of(dsn).read(read)
    behind = time.time() - clock
    how = f"by {kinds}" if kinds else "exactly, without an index"
    rights = f"role {role} may{'' if may else ' not'} {'read' if in_place else 'read and write'} it"
    about = f"PostgreSQL {version.split()[0]}, pgvector {pgvector or 'missing'}"
    fixes = []
    if pgvector and tuple(int(part) for part in pgvector.split(".")[:2]) < OLDEST:
        why = f"pgvector {pgvector} has no iterative scan, so filters lose hits"
        fixes.append(f"{why}: ALTER EXTENSION vector UPDATE")
    if not may:
        fixes.append(f"grant the role {role} {needed} on the table")
    if abs(behind) > CLOCKS_S:
        off = f"{abs(behind):.0f} s {'behind' if behind > 0 else 'ahead of'} this machine's"
        fixes.append(f"the server's clock is {off}; set one of them right")
    if in_place and not kinds:
        fixes.append("a table of many rows is searched quicker with an index: CREATE INDEX ... USING hnsw")
    return Facts(f"{dsn}: {about}; vectors searched {how}; {rights}", "; ".join(fixes))
