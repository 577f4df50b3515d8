"""The store's tables in PostgreSQL: schema/v1.postgres.sql, v2.postgres.sql, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from core.store import migrations
from core.store.migrations import SCHEMA, steps

NAMESPACE = "routescope"  # the PostgreSQL schema that holds the tables
WRITING, MIGRATING = 0x52745377, 0x52745363  # keys of PostgreSQL's advisory locks


class SchemaConnection(Protocol):
    """The connection methods this module uses."""

    @property
    def dsn(self) -> object: ...

    @property
    def in_transaction(self) -> bool: ...

    @property
    def closed(self) -> bool: ...

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any: ...


STEPS = steps(".postgres.sql")


def migrate(connection: SchemaConnection) -> None:
    """Bring the tables to this program's schema, all or nothing; processes that start at once wait.

    Raises BadInput if this program cannot read the tables.
    """
    if version(connection) == SCHEMA:
        return
    # before the transaction begins: one that waits inside may go on seeing that the tables are not there
    connection.execute(f"SELECT pg_advisory_lock({MIGRATING})")
    connection.execute("BEGIN")
    try:
        before = version(connection)
        if before == 0:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {NAMESPACE}")
            connection.execute("CREATE TABLE store_version (version bigint NOT NULL)")
            connection.execute("INSERT INTO store_version VALUES (0)")
        for statements in STEPS[before:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute("UPDATE store_version SET version = ?", (SCHEMA,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        if not connection.closed:
            connection.execute(f"SELECT pg_advisory_unlock({MIGRATING})")


def version(connection: SchemaConnection) -> int:
    """Return the schema version of the tables, 0 if there are none. Raises BadInput for newer ones."""
    (unreleased,), (current,) = (
        connection.execute(f"SELECT to_regclass('{NAMESPACE}.{table}')").fetchone()
        for table in ("schema_version", "store_version")
    )
    found = int(connection.execute("SELECT version FROM store_version").fetchone()[0]) if current else 0
    return migrations.check(connection.dsn, found, unreleased=bool(unreleased))
