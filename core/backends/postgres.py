"""Connections to a PostgreSQL server that holds a corpus; psycopg is imported by the first one.

Errors of the server become one sentence that says what to do, never with a password.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from core.domain.errors import BadInput, Cancelled, RouteScopeError, Unavailable
from core.domain.postgres import INSTALL, Dsn

if TYPE_CHECKING:
    import psycopg

CONNECT_S = 10
SEARCH_S = 120  # the longest statement of a search
IDLE = 8  # connections kept open for the next ones who read
PASSWORD = "give it in ~/.pgpass, PGPASSWORD or [corpora.NAME] dsn of the settings file"
VECTOR_EXTENSION = "run CREATE EXTENSION vector in that database, with the rights of its owner"
R = TypeVar("R")
Connection = Any  # psycopg.Connection, which is imported only where a corpus is in PostgreSQL


def driver() -> Any:
    """psycopg; Unavailable with the way to get it."""
    try:
        import psycopg
    except ImportError:
        raise Unavailable(f"a corpus in PostgreSQL needs psycopg; install it: {INSTALL}") from None
    return psycopg


class PostgresServer:
    """A database on a server. Safe to call from several threads: each call has a connection to itself."""

    def __init__(self, dsn: Dsn) -> None:
        self.dsn = dsn
        self._idle: list[Connection] = []

    def read(self, work: Callable[[Connection], R]) -> R:
        """Return the result of `work` on a connection with one read-only snapshot. A lost connection is
        restored once, as repeating a read is harmless. Raises Unavailable and BadInput.
        """
        for again in (True, False):
            connection, kept = self._taken()
            try:
                with connection.transaction():
                    found = work(connection)
            except driver().Error as error:
                state = error.sqlstate or ""
                lost = connection.closed or connection.broken or state.startswith(("08", "57P"))
                connection.close()
                if lost and (again or kept):
                    self.close()
                    continue
                raise self.readable_error(error) from None
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return found
        raise AssertionError("unreachable")

    @contextmanager
    def streaming(self) -> Iterator[Connection]:
        """As `read` for what is read piece by piece; a connection that is lost in the middle is an error."""
        connection, _ = self._taken()
        try:
            with connection.transaction():
                yield connection
        except BaseException as error:
            connection.close()
            if isinstance(error, driver().Error):
                raise self.readable_error(error) from None
            raise
        self._give_back(connection)

    @contextmanager
    def writing(self, cancel: threading.Event | None = None) -> Iterator[Connection]:
        """Yield a connection in one atomic transaction. `cancel` ends the running statement."""
        connection = self._connect(read_only=False)
        ended = threading.Event()

        def watch() -> None:
            """End the statement under way when Stop is pressed."""
            while cancel is not None and not ended.wait(0.2):
                if cancel.is_set():
                    with suppress(Exception):  # it ended meanwhile
                        connection.cancel_safe(timeout=5)
                    return

        threading.Thread(target=watch, daemon=True).start()
        try:
            with connection.transaction():
                yield connection
        except driver().Error as error:
            if cancel is not None and cancel.is_set():
                raise Cancelled(
                    "indexing was stopped; the embeddings made so far are saved for next time"
                ) from None
            raise self.readable_error(error) from None
        finally:
            ended.set()
            connection.close()

    def close(self) -> None:
        """Let go of the connections that nobody uses."""
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    def readable_error(self, error: psycopg.Error) -> RouteScopeError:
        """Convert an error of the driver or the server to one sentence with a remedy."""
        said, state = self.dsn.clean(str(error)), error.sqlstate or ""
        if state.startswith("22"):
            return BadInput(f"{self.dsn} cannot compare these values: {said}")
        sign_in = state.startswith("28") or "password" in said or "authentication failed" in said
        kind = "28" if sign_in else (state or "08") + (" vector" if "vector" in said else "")
        told = next((words for pattern, words in _ERRORS.items() if re.match(pattern, kind)), "{}: {}")
        return Unavailable(told.format(self.dsn, said))

    def _taken(self) -> tuple[Connection, bool]:
        """Return a connection, and whether it was kept open and may thus be lost."""
        try:
            return self._idle.pop(), True
        except IndexError:
            return self._connect(read_only=True), False

    def _give_back(self, connection: Connection) -> None:
        if len(self._idle) < IDLE and not connection.closed:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self, *, read_only: bool) -> Connection:
        psycopg = driver()
        limits = f"-c default_transaction_read_only=on -c statement_timeout={SEARCH_S}s" if read_only else ""
        try:
            connection = psycopg.connect(
                self.dsn.conninfo(),
                autocommit=True,
                connect_timeout=CONNECT_S,
                application_name="routescope corpus",
                options=limits,
                prepare_threshold=None,
            )
        except psycopg.ProgrammingError:  # it quotes what it could not read, password and all
            raise BadInput(f"the address {self.dsn} is not one that PostgreSQL's client can read") from None
        except psycopg.Error as error:
            raise self.readable_error(error) from None
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            raise BadInput(f"{self.dsn} holds texts as {encoding}; a corpus needs a database with UTF8")
        try:  # its types and operators may stand in a schema that is not searched
            connection.execute(
                "SELECT set_config('search_path', current_setting('search_path') || ', '"
                " || quote_ident(n.nspname), false) FROM pg_extension e JOIN pg_namespace n"
                " ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
            )
        except psycopg.Error as error:
            connection.close()
            raise self.readable_error(error) from None
        return connection


_ERRORS = {  # by SQLSTATE (PostgreSQL, appendix A)
    "28": f"{{}} refused the sign-in: {{}}. If a password is missing, {PASSWORD}",
    "42501": "the role of {} has not the right: {}. Its owner can GRANT it",
    "53100": "the server of {} has no room left on its disk: {}. Nothing was stored; make room",
    "53|58030": "the server of {} has not the resources: {}. Nothing was stored; run it again",
    "57014": f"{{}} took longer than {SEARCH_S} s for a statement: {{}}",
    "25006": "{} is read-only: {}",
    "(42704|42883|0A000) vector": f"pgvector is missing in {{}} or too old: {{}}; {VECTOR_EXTENSION}",
    "42P01|42703|3F000": "{} has not what was there before: {}",
    "08|57P": "the connection to {} was lost or refused: {}",
}
