"""Names and values as SQL writes them."""

from __future__ import annotations

import re

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# sqlite.org/lang_keywords.html: a name like one of these has to be quoted.
KEYWORDS = frozenset(
    """
    abort action add after all alter always analyze and as asc attach autoincrement before begin between by
    cascade case cast check collate column commit conflict constraint create cross current current_date
    current_time current_timestamp database default deferrable deferred delete desc detach distinct do drop
    each else end escape except exclude exclusive exists explain fail filter first following for foreign from
    full generated glob group groups having if ignore immediate in index indexed initially inner insert
    instead intersect into is isnull join key last left like limit match materialized natural no not nothing
    notnull null nulls of offset on or order others outer over partition plan pragma preceding primary query
    raise range recursive references regexp reindex release rename replace restrict returning right rollback
    row rows savepoint select set table temp temporary then ties to transaction trigger true false unbounded
    union unique update using vacuum values view virtual when where window with without rowid oid _rowid_
    """.split()  # noqa: SIM905 - a list of words is read more easily than a list of quoted words
)


def literal(value: str | int) -> str:
    """`value` as SQL writes it."""
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """Quote `name` for SQL."""
    return '"' + name.replace('"', '""') + '"'


def written(name: str) -> str:
    """`name` as a query writes it: in quotes only where SQL needs them."""
    return name if PLAIN.fullmatch(name) and name.lower() not in KEYWORDS else quoted(name)


def dotted(table: str, column: str) -> str:
    """Return a column as a query writes it: table.column."""
    return f"{written(table)}.{written(column)}"
