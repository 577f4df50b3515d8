"""The columns of a database with the same content, by which tables can be joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

from core.backends.sql.database import Ask, Column, Database, DatabaseTable
from core.backends.sql.guard import SqlError
from core.backends.sql.names import dotted, quoted

UNIQUE = 0.9  # share of different values from which a column is one that others may point at
CONTAINED = 0.6  # share of the different values of a text column that the other holds; of numbers, all
TELLING = 8  # different values that a text column has at least to be tied to one of another name
LOOKED = 2_000  # different values that are looked at

Place = tuple[str, str]  # table, column


@dataclass(frozen=True, slots=True)
class Join:
    """Two columns that hold the same things: a foreign key, or `inferred` from their values."""

    table: str
    column: str
    other: str
    other_column: str
    inferred: bool = False

    @property
    def ends(self) -> tuple[Place, Place]:
        """Both columns."""
        return (self.table, self.column), (self.other, self.other_column)

    def __str__(self) -> str:
        """Format the condition."""
        told = " = ".join(dotted(*end) for end in self.ends)
        return f"{told} (inferred)" if self.inferred else told


def joins(
    database: Database,
    tables: Sequence[DatabaseTable],
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[tuple[Join, ...], str]:
    """Return the joins among `tables`, declared ones first, and why the search for more was cut short, or "".

    Columns of two tables without a foreign key are compared: a column points at one of the other table whose
    values are nearly all different and contain nearly all of its own, if both have one name or are text with
    enough different values. Numbers with other names are excluded: small ones are contained in each other.
    Source: Rostin et al. 2009, "A Machine Learning Approach to Foreign Key Discovery", WebDB, section 3:
    coverage, names and the number of different values identify a foreign key.
    """
    key = ("joins", frozenset(table.name for table in tables))
    if (known := database.found.get(key)) is not None:
        return known, ""
    found = list(declared(tables))
    try:
        found += _inferred(tables, found, database.within(seconds, cancelled))
    except SqlError as error:
        return tuple(found), f"not every pair of columns was compared: {error}"
    database.found[key] = tuple(found)
    return tuple(found), ""


def declared(tables: Sequence[DatabaseTable]) -> tuple[Join, ...]:
    """Return the foreign keys between `tables`; one that names no column points at the primary key."""
    by_name = {table.name.lower(): table for table in tables}
    found: dict[Join, None] = {}
    for table in tables:
        for own, other, column in table.keys:
            target = by_name.get(other.lower())
            there = target.columns if target else ()
            mine = [one.name for one in table.columns if one.name.lower() == own.lower()]
            theirs = [o.name for o in there if (o.name.lower() == column.lower() if column else o.key)]
            if target and mine and theirs and (table.name, mine[0]) != (target.name, theirs[0]):
                found.setdefault(Join(table.name, mine[0], target.name, theirs[0]))
    return tuple(found)


def groups(found: Iterable[Join]) -> tuple[tuple[Place, ...], ...]:
    """Group the columns with the same content, as joins connect them, each group in order of mention."""
    of: dict[Place, list[Place]] = {}
    for join in found:
        one, other = (of.setdefault(end, [end]) for end in join.ends)
        if one is not other:
            one += other
            for place in other:
                of[place] = one
    return tuple({id(group): tuple(group) for group in of.values()}.values())


@dataclass(frozen=True, slots=True)
class _Counted:
    """A column with its number of different values and of values that are not NULL."""

    table: DatabaseTable
    column: Column
    different: int
    filled: int


def _inferred(tables: Sequence[DatabaseTable], known: Sequence[Join], ask: Ask) -> list[Join]:
    counted: list[_Counted] = []
    for table in tables:
        parts = [f"count(DISTINCT {quoted(one.name)}), count({quoted(one.name)})" for one in table.columns]
        (row,) = ask(f"SELECT {', '.join(parts)} FROM {quoted(table.name)}")
        numbers = [int(value or 0) for value in row]
        counted += map(_Counted, repeat(table), table.columns, numbers[::2], numbers[1::2])
    tied = {frozenset((one.table, one.other)) for one in known}
    found: list[Join] = []
    for target in counted:
        if target.filled < 2 or target.different < UNIQUE * target.filled:
            continue
        for one in counted:
            pair = frozenset((one.table.name, target.table.name))
            if len(pair) == 2 and pair not in tied and _alike(one, target) and _contained(one, target, ask):
                found.append(
                    Join(one.table.name, one.column.name, target.table.name, target.column.name, True)
                )
    return found


def _alike(one: _Counted, target: _Counted) -> bool:
    """Return True if the names or kinds of two columns allow one to point at the other."""
    if one.column.textual != target.column.textual or one.different < 2:
        return False
    mine, theirs = one.column.name.lower(), target.column.name.lower()
    whole = target.table.name.lower()
    if mine == theirs:
        return theirs not in ("id", "name")  # every table has those: equal names say nothing
    if mine in (f"{whole}_{theirs}", f"{whole}{theirs}", f"{whole.removesuffix('s')}_{theirs}"):
        return True
    return one.column.textual and one.different >= TELLING


def _contained(one: _Counted, target: _Counted, ask: Ask) -> bool:
    mine, theirs = quoted(one.column.name), quoted(target.column.name)
    ((missing,),) = ask(
        f"SELECT count(*) FROM (SELECT DISTINCT {mine} AS v FROM {quoted(one.table.name)} "
        f"WHERE {mine} IS NOT NULL LIMIT {LOOKED}) WHERE v NOT IN "
        f"(SELECT {theirs} FROM {quoted(target.table.name)} WHERE {theirs} IS NOT NULL)"
    )
    allowed = 1 - CONTAINED if one.column.textual else 0.0
    return int(missing or 0) <= allowed * min(one.different, LOOKED)
