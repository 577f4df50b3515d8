"""The limits on SQL written by a model, enforced while SQLite compiles and runs it, whatever its text
says.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from core.domain.errors import RouteScopeError

FUNCTIONS = frozenset(
    """
    abs acos asin atan atan2 avg ceil ceiling coalesce concat concat_ws cos count cume_dist current_date
    current_time current_timestamp date datetime degrees dense_rank exp first_value floor glob group_concat
    ifnull iif instr julianday lag last_value lead length like ln log log10 log2 lower ltrim max min mod
    nth_value ntile nullif percent_rank pi pow power radians rank replace round row_number rtrim sign sin
    sqrt strftime string_agg substr substring sum tan time timediff total trim trunc typeof unicode
    unixepoch upper
    """.split()  # noqa: SIM905 - a list of words is read more easily than a list of quoted words
)
_ACTIONS = {
    getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ")
    for name in """
    ALTER_TABLE ANALYZE ATTACH CREATE_INDEX CREATE_TABLE CREATE_TEMP_TABLE CREATE_TRIGGER CREATE_VIEW
    CREATE_VTABLE DELETE DETACH DROP_TABLE DROP_VIEW INSERT PRAGMA REINDEX SAVEPOINT TRANSACTION UPDATE
    """.split()  # noqa: SIM905
}
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])"""
    r"""|(?P<word>\w+)|(?P<mark>.)""",
    re.DOTALL,
)


class SqlError(RouteScopeError):
    """Base of what can be wrong with a query; the message may be shown to the model for another attempt."""


class SqlFailed(SqlError):
    """SQLite does not run it: a syntax error, a column that is not there."""


class SqlRejected(SqlError):
    """Base of what the guard does not let pass: the message names what is wrong and what is allowed."""


class NotOneStatement(SqlRejected):
    """There are several statements, or none."""


class NotASelect(SqlRejected):
    """The statement is no SELECT, or writes."""


class ForbiddenSql(SqlRejected):
    """It reads or calls what is not on the list."""


class TooSlow(SqlRejected):
    """It was still running when its time was up."""


class TooBig(SqlRejected):
    """A value, the statement or its depth is beyond the limits."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of one query."""

    seconds: float = 1.5
    rows: int = 200  # maximum rows of a result
    value: int = 1_000  # maximum characters of a shown value
    result: int = 100_000  # maximum characters of a result
    length: int = 200_000  # maximum bytes of a string that the query builds or reads; more ends it


def tokens(sql: str) -> list[tuple[str, int]]:
    """(token, depth of parentheses around it): words in upper case, quoted texts as they are; no comments."""
    found: list[tuple[str, int]] = []
    depth = 0
    for match in _TOKEN.finditer(sql):
        if match.lastgroup == "space":
            continue
        depth -= match[0] == ")"
        found.append((match[0].upper() if match.lastgroup == "word" else match[0], depth))
        depth += match[0] == "("
    return found


def ordered(sql: str) -> bool:
    """Return True if a query orders its rows: ORDER BY outside of all parentheses."""
    outer = [token for token, depth in tokens(sql) if depth == 0]
    return any(pair == ("ORDER", "BY") for pair in itertools.pairwise(outer))


def named_parts(sql: str) -> set[str]:
    """Return the lower-case names that WITH gives to parts of a query: `name AS (` or `name (columns) AS
    (`.
    """
    found = tokens(sql)
    names = set()
    for at, (token, depth) in enumerate(found):
        if token != "AS" or at == 0 or not any(after == "(" for after, _ in found[at + 1 : at + 4]):
            continue
        before = at - 1
        if found[before][0] == ")":
            while before > 0 and found[before] != ("(", depth):
                before -= 1
            before -= 1
        names.add(found[max(before, 0)][0].strip("\"`[]'").lower())
    return {name for name in names if not name.startswith("sqlite_")}


def check_statement(sql: str) -> None:
    """Raise unless `sql` is one statement that begins as a SELECT does; what it reads is the authorizer's."""
    found = [token for token, _ in tokens(sql)]
    while found and found[-1] == ";":
        found.pop()
    if not found:
        raise NotOneStatement("there is no statement; give one SELECT")
    if ";" in found:
        raise NotOneStatement(f"there are {found.count(';') + 1} statements; give one SELECT")
    if found[0] not in ("SELECT", "WITH"):
        raise NotASelect(
            f"the statement begins with {found[0][:40]!r}; only SELECT, or WITH ... SELECT, runs"
        )


class Authorizer:
    """SQLite's authorizer callback with an allow-list; keeps the first thing it denied as an error.

    Source: sqlite.org/c3ref/set_authorizer.html: it is asked while a statement is compiled, for each action.
    """

    def __init__(self, tables: Collection[str], parts: Collection[str] = ()) -> None:
        self.tables = {name.lower() for name in tables}
        # What the statement itself names; SQLite asks for these when rows are counted.
        self.parts = set(parts)
        self.denied: SqlRejected | None = None
        self.read: set[str] = set()  # tables in lower case

    def hide(self, names: Iterable[str]) -> None:
        """Names in lower case that the database has: those not among the tables are no parts of a statement,
        as SQLite asks in the same words for a part and for the hidden table of that name.
        """
        self.parts -= set(names) - self.tables

    def __call__(
        self, action: int, first: str | None, second: str | None, _base: str | None, _by: str | None
    ) -> int:
        """SQLITE_OK or SQLITE_DENY."""
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            name = (first or "").lower()
            if name in self.tables:
                self.read.add(name)
                return sqlite3.SQLITE_OK
            if not second and name in self.parts:
                return sqlite3.SQLITE_OK
            return self._deny(ForbiddenSql(f"table {(first or '')[:80]!r} may not be read; {self._known()}"))
        if action == sqlite3.SQLITE_FUNCTION:
            if (second or "").lower() in FUNCTIONS:
                return sqlite3.SQLITE_OK
            why = f"function {(second or '')[:80]!r} is not allowed; use: {', '.join(sorted(FUNCTIONS))}"
            return self._deny(ForbiddenSql(why))
        if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":  # so SQLite declares a virtual table
            return self._deny(ForbiddenSql(f"virtual tables may not be read; {self._known()}"))
        what = _ACTIONS.get(action, f"action {action}")
        return self._deny(NotASelect(f"{what} is not allowed; a query may only SELECT"))

    def _known(self) -> str:
        return f"there are: {', '.join(sorted(self.tables)[:40])}"

    def _deny(self, why: SqlRejected) -> int:
        self.denied = self.denied or why
        return sqlite3.SQLITE_DENY


def limit(connection: sqlite3.Connection, limits: QueryLimits) -> None:
    """Bound what compiling and running may take in memory, and forbid attaching."""
    for what, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.length),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 20_000),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 500),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    ):
        connection.setlimit(what, most)


def too_slow(seconds: float) -> TooSlow:
    """Return the error of a query that timed out."""
    return TooSlow(f"the query ran longer than {seconds:g} s, which is the time a query has")


def in_words(error: Exception, guard: Authorizer, late: Callable[[], bool], limits: QueryLimits) -> SqlError:
    """Convert an exception of SQLite to this module's error."""
    said = str(error)
    if guard.denied is not None:
        return guard.denied
    if said == "interrupted" and late():
        return too_slow(limits.seconds)
    if re.search("overflow|too (big|large|complex|many|deep|long)", said):
        return TooBig(f"{said}: a value may have {limits.length} bytes, a statement 20000")
    if isinstance(error, MemoryError | OverflowError):
        return TooBig(f"it exceeds the memory limit of a query ({said or 'out of memory'})")
    return SqlFailed(said or type(error).__name__)
