"""Names and values as SQL writes them."""

from __future__ import annotations

import re

from core.domain.program import table

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KEYWORDS = frozenset(table(__file__)["keywords"].split())


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
