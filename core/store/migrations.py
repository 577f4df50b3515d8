"""Brings the store's file to the newest schema: schema/v1.sql, v2.sql, ... A released step never changes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from core.domain.errors import BadInput
from core.domain.program import COMMAND

APPLICATION = 0x52745331  # "RtS1" in the file's header marks it as a store
UNRELEASED = 0x52745363  # the mark of files from before the first release

SCHEMA = 1  # the version that this program reads and writes
SCHEMAS = Path(__file__).with_name("schema")
Steps = tuple[tuple[str, ...], ...]


def steps(suffix: str) -> Steps:
    """Return the statements of each version, read from the files schema/v1`suffix`, schema/v2`suffix`, ..."""
    return tuple(statements(f"v{number}{suffix}") for number in range(1, SCHEMA + 1))


def statements(name: str) -> tuple[str, ...]:
    """Return the statements of a file of the folder schema."""
    return tuple(filter(None, map(str.strip, (SCHEMAS / name).read_text("utf-8").split(";\n"))))


STEPS = steps(".sql")


def migrate(connection: sqlite3.Connection, steps: Steps = STEPS) -> None:
    """Bring the file to the last of `steps`, all or nothing; processes that open it at once wait."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (before,) = connection.execute("PRAGMA user_version").fetchone()
        for statements in steps[before:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check(place: object, found: int, *, unreleased: bool) -> int:
    """Return the schema version `found` in a store. Raises BadInput if this program cannot read it."""
    if unreleased:
        raise BadInput(
            f"{place} was written before RouteScope's first release and cannot be read; export its runs with "
            f"the version that wrote it ({COMMAND} sessions export --format jsonl), or delete it"
        )
    if found > SCHEMA:
        raise BadInput(
            f"{place} was written by a newer RouteScope (schema {found}; this one reads up to {SCHEMA}); "
            "update RouteScope or use another store"
        )
    return found
