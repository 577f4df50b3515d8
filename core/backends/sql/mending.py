"""Hints about a query that failed or found nothing, so that the next one differs."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from core.backends.sql.database import Database, DatabaseTable
from core.backends.sql.guard import SqlError, tokens
from core.backends.sql.joins import Join, Place, groups
from core.backends.sql.linking import ValueLink
from core.backends.sql.names import dotted, literal, quoted, written

log = logging.getLogger(__name__)
NAMED = 6  # tables or columns in one hint
NEAR = 3  # names like the one that is not there
_NO_COLUMN = re.compile(r"no such column: (.+)")  # SQLite's words
_NO_TABLE = re.compile(r"no such table: (.+)")
_QUOTES = '"`[]'


@dataclass(frozen=True, slots=True)
class TextComparison:
    """A text that a query compares a column with."""

    table: str  # as the query names it; "" if it does not
    column: str
    value: str
    like: bool


def normalised(sql: str) -> str:
    """Normalise spaces, comments, case of words and the final semicolon of a query."""
    found = [token for token, _ in tokens(sql)]
    while found and found[-1] == ";":
        found.pop()
    return " ".join(found)


def compared(sql: str) -> tuple[TextComparison, ...]:
    """Return the texts that columns are compared with by =, LIKE and IN."""
    found = [token for token, _ in tokens(sql)]
    made: list[TextComparison] = []
    place: tuple[str, str] | None = None
    like = False
    for at, token in enumerate(found):
        if token in ("=", "LIKE", "IN") and at:
            where = at - (2 if found[at - 1] == "NOT" else 1)
            table = found[where - 2] if where >= 2 and found[where - 1] == "." else ""
            place, like = (table.strip(_QUOTES), found[where].strip(_QUOTES)), token == "LIKE"
        elif token.startswith("'") and place is not None:
            made.append(TextComparison(*place, token[1:-1].replace("''", "'"), like))
        elif token not in ("(", ",", "'"):
            place = None
    return tuple(made)


def about_error(error: str, tables: Sequence[DatabaseTable]) -> str:
    """Explain a query's error, with the tables that have the missing name."""
    column = _NO_COLUMN.fullmatch(error)
    if column:
        given = column[1].strip()
        table, _, name = given.rpartition(".")
        name = name.strip(_QUOTES)
        columns = [(own.name.lower(), dotted(one.name, own.name)) for one in tables for own in one.columns]
        have = [place for own, place in columns if own == name.lower()]
        own = next((one for one in tables if one.name.lower() == table.strip(_QUOTES).lower()), None)
        listed = f" {written(own.name)} has {_listed([one.name for one in own.columns])}." if own else ""
        if have:
            return f"There is no column {given} there.{listed} Use {_listed(have)}, with its table in FROM."
        known = dict(columns)
        near = [known[one] for one in difflib.get_close_matches(name.lower()[:100], known, NEAR, 0.5)]
        return f"There is no column {given}.{listed}{f' Like it: {_listed(near)}.' if near else ''}"
    missing = _NO_TABLE.fullmatch(error)
    if missing:
        return f"There is no table {missing[1]}. The tables: {_listed([one.name for one in tables])}."
    return f"Error: {error}."


def about_given(sql: str, tables: Sequence[DatabaseTable]) -> str:
    """Return a hint if a SELECT, nested ones included, returns only what it fixes to a text, as the question
    does, with the columns it could select instead; else "".
    """
    return next(filter(None, (_given(one, tables) for one in _selects(tokens(sql)))), "")


def _selects(found: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield the tokens of each SELECT without those of SELECTs nested in it."""
    for start, (first, depth) in enumerate(found):
        if first == "SELECT":
            own: list[str] = []
            for token, at in found[start:]:
                if at < depth:
                    break
                if at == depth:
                    own.append(token)
            yield own


def _given(outer: Sequence[str], tables: Sequence[DatabaseTable]) -> str:
    """`about_given` for the tokens of one SELECT without what is nested in it."""
    if not {"FROM", "WHERE"} <= set(outer) or {"OR", "UNION", "EXCEPT", "INTERSECT"} & set(outer):
        return ""
    start, where = outer.index("FROM"), outer.index("WHERE")
    selected = " ".join(outer[1:start]).removeprefix("DISTINCT ").replace(" . ", ".").split(" , ")
    fixed = {
        outer[at - 1].strip(_QUOTES).lower(): outer[at + 1]
        for at in range(where + 1, len(outer) - 1)
        if outer[at] == "=" and outer[at + 1].startswith("'")
    }
    names = [one.rpartition(".")[2].strip(_QUOTES).lower() for one in selected]
    if not all(name in fixed for name in names):
        return ""
    of = outer[start + 1].strip(_QUOTES).lower()
    source = next((one for one in tables if one.name.lower() == of), None)
    others = [one.name for one in source.columns if one.name.lower() not in fixed] if source else []
    told = f" Select another column of {source.name}: {_listed(others)}." if source and others else ""
    given = f"SELECT {', '.join(names)} ... WHERE {names[0]} = {fixed[names[0]]}"
    return f"{given} only gives back what the question names.{told}"


def about_nothing(
    database: Database,
    sql: str,
    tables: Sequence[DatabaseTable],
    links: Sequence[ValueLink],
    joins: Sequence[Join],
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> str:
    """Why a query may have found no row: texts that are not in the column they are compared with, and stored
    values of the question that it does not use. "" where there is neither. A text that stands in a column
    which holds the same things, as `joins` say, is in its place: a state without a river.
    """
    ask = database.within(seconds, cancelled)
    said: list[str] = []
    written_texts = compared(sql)
    columns = [(table.name, one.name) for table in tables for one in table.columns if one.textual]
    try:
        for one in written_texts:
            if one.like and set(one.value) & set("%_"):
                continue
            places = [
                (table, column)
                for table, column in columns
                if ask(f"SELECT 1 FROM {quoted(table)} WHERE {quoted(column)} = ? LIMIT 1", [one.value])
            ]
            same = [place for group in groups(joins) if not set(group).isdisjoint(places) for place in group]
            if not _among(one, [*places, *same], tables):
                listed = _listed([dotted(*place) for place in places])
                where = f"it is in {listed}" if places else "nor elsewhere"
                said.append(f"{literal(one.value)} is not in {one.column.lower()}, {where}.")
    except SqlError as error:  # the search did not finish: no more is known
        log.debug("%s", error)
    used = " ".join(one.value.lower() for one in written_texts)
    unused: dict[str, list[str]] = {}
    for link in links:
        if link.exact and isinstance(link.value, str) and link.value.lower() not in used:
            unused.setdefault(literal(link.value), []).append(link.place)
    if not written_texts or said:  # what the question names stands nowhere in the query
        said += [f"{value} is in {_listed(places)}." for value, places in unused.items()]
    return " ".join(["The query found no rows.", *said]) if said else ""


def _among(one: TextComparison, places: Sequence[Place], tables: Sequence[DatabaseTable]) -> bool:
    """Return True if the compared column is one of `places`; an alias names no table, so the column's name
    has to match.
    """
    known = {table.name.lower() for table in tables}
    table = one.table.lower() if one.table.lower() in known else ""
    return any(
        column.lower() == one.column.lower() and (not table or name.lower() == table)
        for name, column in places
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
