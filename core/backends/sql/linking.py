"""Which tables and which stored values a question is about, and how a model is shown them."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from core.backends.sql.database import Database, Table
from core.backends.sql.guard import Limits, SqlError, TooBig, TooSlow

WORDS = 4  # words that one stored value may have in the question
CANDIDATES = 200
PER_COLUMN = 2
MOST = 12  # values linked in all
LONGEST = 60  # characters of a value that is looked for inside, or shown
EXAMPLES = 3
FEW = 6  # different values a column has at most for all of them to be shown
DDL = 2_500  # characters of a table's own statement; a longer one is written anew from its columns
SHOWN = 12_000  # characters of all tables: some 4,000 tokens
_WORD = re.compile(r"\w(?:[\w.&/'’-]*\w)?")


@dataclass(frozen=True, slots=True)
class Link:
    """A stored value that the question names; `exact`: word for word, else a part of it is."""

    table: str
    column: str
    value: str | int
    exact: bool

    def __str__(self) -> str:
        """The condition that picks it."""
        return f"{self.table}.{self.column} = {literal(self.value)}"


def phrases(text: str, stops: Collection[str]) -> list[str]:
    """The runs of up to four words of a question, longest first, that a value may be; no single stop word."""
    words = _WORD.findall(text)
    found: dict[str, None] = {}
    for length in range(WORDS, 0, -1):
        for at in range(len(words) - length + 1):
            run = " ".join(words[at : at + length])
            if length > 1 or (run.lower() not in stops and (len(run) > 1 or run.isdigit())):
                found.setdefault(run)
    return list(found)[-CANDIDATES:]


def names(text: str, stops: Collection[str]) -> list[str]:
    """Words that look like names or codes: a capital that does not begin the question, or digits among
    letters. Digits alone are none: a year stands in every date.
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
) -> tuple[tuple[Link, ...], str]:
    """Stored values that `text` names, exact ones first, and why the search was cut short, or "".

    Every text column is looked through for the phrases of the question, and key columns for its numbers; then
    for names and codes that were not found so, values that contain one.
    Source: Lin et al. 2020, "Bridging Textual and Tabular Data ...", arXiv:2012.12627, section 3.3: the
    values a question mentions are given with their columns; there by fuzzy matching, here word by word.
    """
    end = time.monotonic() + seconds
    runs, parts = phrases(text, stops), names(text, stops)
    numbers = [int(run) for run in runs if run.isascii() and run.isdigit() and 3 <= len(run) <= 15]
    found: list[Link] = []

    def look(table: Table, column: str, condition: str, values: Sequence[str | int], exact: bool) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TooSlow(f"not every column could be looked through in {seconds:g} s")
        name = quoted(column)
        sql = (
            f"SELECT DISTINCT {name} FROM {quoted(table.name)} "
            f"WHERE length({name}) <= {LONGEST} AND ({condition}) LIMIT {PER_COLUMN}"
        )
        limits = Limits(seconds=left, rows=PER_COLUMN)
        try:
            rows = database.query(sql, values, limits=limits, cancelled=cancelled).rows
        except TooBig:
            return  # values as long as that are not what a question names
        found.extend(
            Link(table.name, column, value, exact) for (value,) in rows if isinstance(value, str | int)
        )

    note = ""
    try:
        for table in database.tables:
            for column in table.columns:
                keys = {own for own, _, _ in table.keys}
                name = quoted(column.name)
                if column.textual and runs:
                    marks = ", ".join("?" * len(runs))
                    look(table, column.name, f"{name} COLLATE NOCASE IN ({marks})", runs, True)
                elif numbers and (column.key or column.name in keys):
                    look(table, column.name, f"{name} IN ({', '.join('?' * len(numbers))})", numbers, True)
        known = " ".join(str(one.value).lower() for one in found)
        for part in [part for part in parts if part.lower() not in known]:
            for table in database.tables:
                for column in table.columns:
                    if column.textual:
                        like = "%" + re.sub(r"([%_!])", r"!\1", part) + "%"
                        look(table, column.name, f"{quoted(column.name)} LIKE ? ESCAPE '!'", (like,), False)
    except SqlError as error:
        note = str(error)
    distinct = dict.fromkeys(sorted(found, key=lambda one: (not one.exact, -len(str(one.value)))))
    return tuple(distinct)[:MOST], note


def connect(chosen: Sequence[str], tables: Sequence[Table]) -> tuple[str, ...]:
    """`chosen`, then the tables on shortest paths of foreign keys from the first to each of the others."""
    near: dict[str, set[str]] = {table.name: set() for table in tables}
    for table in tables:
        for _, other, _ in table.keys:
            known = next((name for name in near if name.lower() == other.lower()), None)
            if known is not None and known != table.name:
                near[table.name].add(known)
                near[known].add(table.name)
    added: dict[str, None] = dict.fromkeys(chosen)
    for goal in chosen[1:]:
        for name in _path(near, chosen[0], goal):
            added.setdefault(name)
    return tuple(added)


def _path(near: dict[str, set[str]], start: str, goal: str) -> list[str]:
    """The names on a shortest path, both ends with it; none where there is no path."""
    came: dict[str, str] = {start: start}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        if here == goal:
            path = [here]
            while path[-1] != start:
                path.append(came[path[-1]])
            return path[::-1]
        for there in sorted(near.get(here, ())):
            if there not in came:
                came[there] = here
                waiting.append(there)
    return []


def shown(database: Database, tables: Sequence[Table]) -> list[str]:
    """Each table as a prompt shows it: the statement that makes it, and some values of each text column.

    Source: Rajkumar et al. 2022, "Evaluating the Text-to-SQL Capabilities of Large Language Models",
    arXiv:2204.00498, section 3 (CREATE TABLE with example rows); here different values in place of rows.
    """
    made = [_statement(table) for table in tables]
    if sum(map(len, made)) <= SHOWN:  # else no column is looked through for nothing
        values = [_values(database, table) for table in tables]
        full = [f"{statement}\n{some}".strip() for statement, some in zip(made, values, strict=True)]
        if sum(map(len, full)) <= SHOWN:
            return full
    each = SHOWN // len(tables)
    return [_brief(table)[:each] for table in tables]


def _statement(table: Table) -> str:
    lines = [line.strip() for line in table.sql.splitlines()]
    made = re.sub(r"[ \t]+", " ", "\n".join(line for line in lines if line))
    return made if made and len(made) <= DDL else _brief(table)


def _brief(table: Table) -> str:
    parts = [f"{quoted(column.name)} {column.type}".strip() for column in table.columns]
    parts += [f"FOREIGN KEY ({own}) REFERENCES {other}" for own, other, _ in table.keys]
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(parts)})"


def _values(database: Database, table: Table) -> str:
    """Lines such as "-- status: 'paid', 'lost'": all values of a column that has few, else the first ones."""
    lines = []
    for column in table.columns:
        if column.textual and (values := examples(database, table, column.name, FEW + 1)):
            few = values if len(values) <= FEW else values[:EXAMPLES]
            more = "" if len(values) <= FEW else ", ..."
            lines.append(f"-- {column.name}: " + ", ".join(literal(value) for value in few) + more)
    return "\n".join(lines)


def examples(database: Database, table: Table, column: str, most: int) -> list[str]:
    """Up to `most` different values of a column, the first that are found; none where that takes too long."""
    name, of = quoted(column), quoted(table.name)
    sql = f"SELECT DISTINCT {name} FROM {of} WHERE {name} IS NOT NULL AND {name} <> '' LIMIT {int(most)}"
    try:
        rows = database.query(sql, limits=Limits(seconds=0.5, rows=most, value=LONGEST)).rows
    except SqlError:
        return []  # a value beyond the limits, or a table too large to look through: it has no examples
    return [" ".join(str(value).split()) for (value,) in rows]


def literal(value: str | int) -> str:
    """`value` as SQL writes it."""
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """`name` as SQL reads a name whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
