"""The tables and stored values that a question names, and their presentation to a model."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from core.backends.sql.database import Column, Database, DatabaseTable
from core.backends.sql.guard import SqlError, TooBig, TooSlow
from core.backends.sql.joins import Join, groups
from core.backends.sql.names import dotted, literal, quoted, written

WORDS = 8  # words that one stored value may have in the question
CANDIDATES = 300
PER_COLUMN = 6
MAX_LINKS = 12  # different values linked in all
COLUMNS = 12  # columns that one value is shown in
MAX_VALUE_CHARS = 60  # characters of a value that is looked for inside, or shown
EXAMPLES = 3
EXAMPLES_S = 1.0  # seconds for the examples of one column
DIGITS = 9  # characters of a number that is shown as an example
MAX_LISTED_VALUES = 6  # different values a column has at most for all of them to be shown
DDL = 2_500  # characters of a table's own statement; a longer one is written anew from its columns
MAX_SCHEMA_CHARS = 12_000  # characters of all tables: some 4,000 tokens
_WORD = re.compile(r"\w(?:[\w.&/'’-]*\w)?")
_COMMENT = re.compile(r"--|/\*")
_POSSESSIVE = re.compile(r"['’][sS]$")


@dataclass(frozen=True, slots=True)
class ValueLink:
    """A stored value that the question names; `exact`: word for word, else a part of it is."""

    table: str
    column: str
    value: str | int
    exact: bool

    @property
    def place(self) -> str:
        """The column, as a query names it."""
        return dotted(self.table, self.column)

    def __str__(self) -> str:
        """Format the condition that selects the value."""
        return f"{self.place} = {literal(self.value)}"


@dataclass(frozen=True, slots=True)
class ValueLinks:
    """The stored values that a question names; `complete`: every column was looked through for them, so that
    a phrase of the question that is not here stands in no text column word for word.
    """

    found: tuple[ValueLink, ...] = ()
    complete: bool = True

    def among(self, tables: Collection[str]) -> tuple[ValueLink, ...]:
        """Those in these tables."""
        return tuple(one for one in self.found if one.table in tables)


def values_text(found: Sequence[ValueLink], joins: Sequence[Join] = ()) -> str:
    """List each value once, exactly as stored, with its columns, one line each. The column of the table about
    it comes first: the one that joins point at, preferably the one named after its table.
    """
    targets = {one.ends[1] for one in joins}
    by: dict[str, list[ValueLink]] = {}
    for one in found:
        by.setdefault(literal(one.value), []).append(one)
    lines = []
    for value, links in by.items():
        about = [one for one in links if (one.table, one.column) in targets]
        about.sort(key=lambda one: one.table.lower().removesuffix("s") not in one.column.lower())
        rest = [one.place for one in links if one not in about[:1]][:COLUMNS]
        if about:
            also = f"; also in {', '.join(rest)}" if rest else ""
            lines.append(f"{value} is a row of {written(about[0].table)} ({about[0].place}){also}")
        else:
            lines.append(f"{value} in {', '.join(rest)}")
    return "\n".join(lines)


def known_values(
    database: Database, tables: Sequence[DatabaseTable], links: ValueLinks, joins: Sequence[Join]
) -> dict[tuple[str, str], list[str]]:
    """By text column, the values it may be compared with: those linked to it or to a column that holds the
    same things, and all values of a column that has few. Nothing where not every column was looked through.
    """
    if not links.complete:
        return {}
    same = {place: group for group in groups(joins) for place in group}
    found: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        for column in table.columns:
            if column.textual:
                few = examples(database, table, column.name, MAX_LISTED_VALUES + 1)
                found[table.name, column.name] = few if few and len(few) <= MAX_LISTED_VALUES else []
    for one in links.found:
        own = (one.table, one.column)
        for place in same.get(own, (own,)):
            if place in found and str(one.value) not in found[place]:
                found[place].append(str(one.value))
    return found


def phrases(text: str, stops: Collection[str]) -> list[str]:
    """Return the runs of up to eight words of a question, longest first, that may be a value; no single stop
    word.

    A run that ends in 's is also listed without it: "texas's rivers".
    """
    words = _WORD.findall(text)
    found: dict[str, None] = {}
    for length in range(WORDS, 0, -1):
        for at in range(len(words) - length + 1):
            run = " ".join(words[at : at + length])
            if length > 1 or (run.lower() not in stops and (len(run) > 1 or run.isdigit())):
                found.setdefault(run)
                found.setdefault(_POSSESSIVE.sub("", run))
    return list(found)[-CANDIDATES:]


def names(text: str, stops: Collection[str]) -> list[str]:
    """Return the words that look like names or codes: a capital that does not begin the question, or digits
    among letters. Digits alone do not count: every date contains a year.
    """
    words = _WORD.findall(text)
    return [
        word
        for at, word in enumerate(words)
        if len(word) >= 4
        and any(c.isalpha() for c in word)
        and word.lower() not in stops
        and (any(c.isdigit() for c in word) or (at > 0 and word[0].isupper()))
    ]


def link(
    database: Database,
    text: str,
    stops: Collection[str],
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[tuple[ValueLink, ...], str]:
    """Return stored values that `text` names, exact ones first, and why the search was cut short, or "".

    Every text column is searched for the phrases of the question, and key columns for its numbers; then, for
    names and codes not found so, values that contain one. Source: Lin et al. 2020, "Bridging Textual and
    Tabular Data ...", arXiv:2012.12627, section 3.3: the values a question mentions are listed with their
    columns; there by fuzzy matching, here word by word.
    """
    ask = database.within(seconds, cancelled)
    runs, parts = phrases(text, stops), names(text, stops)
    numbers = [int(run) for run in runs if run.isascii() and run.isdigit() and 3 <= len(run) <= 15]
    found: list[ValueLink] = []

    def look(table: str, column: str, condition: str, values: Sequence[str | int], exact: bool) -> None:
        name = quoted(column)
        sql = (
            f"SELECT DISTINCT {name} FROM {quoted(table)} "
            f"WHERE length({name}) <= {MAX_VALUE_CHARS} AND ({name} {condition}) LIMIT {PER_COLUMN}"
        )
        try:
            rows = ask(sql, values, rows=PER_COLUMN)
        except TooBig:
            return  # values as long as that are not what a question names
        found.extend(
            ValueLink(table, column, value, exact) for (value,) in rows if isinstance(value, str | int)
        )

    note = ""
    columns = [(table, column) for table in database.tables for column in table.columns]
    try:
        for table, column in columns:
            if column.textual and runs:
                look(table.name, column.name, f"COLLATE NOCASE IN ({', '.join('?' * len(runs))})", runs, True)
            elif numbers and (column.key or column.name in {own for own, _, _ in table.keys}):
                look(table.name, column.name, f"IN ({', '.join('?' * len(numbers))})", numbers, True)
        known = " ".join(str(one.value).lower() for one in found)
        for part in [part for part in parts if part.lower() not in known]:
            like = "%" + re.sub(r"([%_!])", r"!\1", part) + "%"
            for table, column in columns:
                if column.textual:
                    look(table.name, column.name, "LIKE ? ESCAPE '!'", (like,), False)
    except TooSlow:
        note = f"not every column could be looked through in {seconds:g} s"
    except SqlError as error:
        note = str(error)
    distinct = dict.fromkeys(sorted(found, key=lambda one: (not one.exact, -len(str(one.value)))))
    values = tuple(dict.fromkeys(one.value for one in distinct))[:MAX_LINKS]
    return tuple(one for one in distinct if one.value in values), note


def connect(chosen: Sequence[str], tables: Sequence[DatabaseTable]) -> tuple[str, ...]:
    """`chosen`, then the tables on shortest paths of foreign keys from the first to each of the others."""
    near: dict[str, set[str]] = {table.name: set() for table in tables}
    by_name = {name.lower(): name for name in near}
    for table in tables:
        for _, other, _ in table.keys:
            if (known := by_name.get(other.lower(), table.name)) != table.name:
                near[table.name].add(known)
                near[known].add(table.name)
    paths = (_path(near, chosen[0], goal) for goal in chosen[1:])
    return tuple(dict.fromkeys([*chosen, *chain.from_iterable(paths)]))


def _path(near: dict[str, set[str]], start: str, goal: str) -> list[str]:
    """Return the names on a shortest path including both ends, or [] if there is no path."""
    seen, waiting = {start}, deque([[start]])
    while waiting:
        path = waiting.popleft()
        if path[-1] == goal:
            return path
        new = sorted(near.get(path[-1], set()) - seen)
        seen.update(new)
        waiting.extend([*path, there] for there in new)
    return []


def schema_text(database: Database, tables: Sequence[DatabaseTable], joins: Sequence[Join] = ()) -> str:
    """Format the tables for a prompt: a CREATE TABLE each with some values after each column, then the joins.

    Source: Rajkumar et al. 2022, "Evaluating the Text-to-SQL Capabilities of Large Language Models",
    arXiv:2204.00498, section 3 (CREATE TABLE with example rows); here different values instead of rows.
    """
    made = [_statement(table) for table in tables]
    if sum(map(len, made)) <= MAX_SCHEMA_CHARS:  # else no column is looked through for nothing
        full = [_with_values(database, table) for table in tables]
        made = full if sum(map(len, full)) <= MAX_SCHEMA_CHARS else made
    if sum(map(len, made)) > MAX_SCHEMA_CHARS:
        made = [statement[: MAX_SCHEMA_CHARS // len(tables)] for statement in made]
    return "\n".join([*made, *joins_text(joins)])


def joins_text(joins: Sequence[Join]) -> list[str]:
    """Format the columns with the same content, one line per group."""
    lines = []
    for group in groups(joins):
        guessed = all(one.inferred for one in joins if one.ends[0] in group)
        names = [dotted(*place) for place in sorted(group)]
        lines.append(f"-- joins{' (inferred from values)' if guessed else ''}: {' = '.join(names)}")
    return lines


def _statement(table: DatabaseTable) -> str:
    """Format a table on one line without values; its own statement is used if it has comments."""
    if _COMMENT.search(table.sql) and len(table.sql) <= DDL:
        return "\n".join(" ".join(line.split()) for line in table.sql.splitlines() if line.strip())
    return f"CREATE TABLE {written(table.name)} ({', '.join(map(_column, table.columns))})"


def _column(column: Column) -> str:
    return f"{written(column.name)} {column.type}{' PRIMARY KEY' if column.key else ''}".strip()


def _with_values(database: Database, table: DatabaseTable) -> str:
    """Format a table with a line for each column: all values of a text column that has few, else some."""
    lines = []
    for column in table.columns:
        values = examples(database, table, column.name, MAX_LISTED_VALUES + 1)
        some = values if column.textual and len(values) <= MAX_LISTED_VALUES else values[:EXAMPLES]
        more = ", ..." if len(values) > len(some) else ""
        lines.append(
            (column, ", ".join(literal(one) if column.textual else one[:DIGITS] for one in some) + more)
        )
    if _COMMENT.search(table.sql) and len(table.sql) <= DDL:
        below = [f"-- {written(column.name)}: {values}" for column, values in lines if values]
        return "\n".join([_statement(table), *below])
    columns = [f"  {_column(column)},{f' -- {values}' if values else ''}" for column, values in lines]
    return "\n".join([f"CREATE TABLE {written(table.name)} (", *columns, ")"])


def examples(database: Database, table: DatabaseTable, column: str, most: int) -> list[str]:
    """Return up to `most` different values of a column, the first found, and remember them; [] if a value is
    beyond the limits or the table too large to look through.
    """
    key = ("examples", table.name, column, most)
    if key not in database.found:
        name, of = quoted(column), quoted(table.name)
        sql = f"SELECT DISTINCT {name} FROM {of} WHERE {name} IS NOT NULL AND {name} <> '' LIMIT {int(most)}"
        try:
            rows = database.within(EXAMPLES_S)(sql, rows=most, value=MAX_VALUE_CHARS)
        except SqlError:
            return []
        database.found[key] = [" ".join(str(value).split()) for (value,) in rows]
    return list(database.found[key])
