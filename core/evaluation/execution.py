"""Execution accuracy: whether the rows of a written query are those of the gold query."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.backends.sql import Database, Limits, Result, SqlError, Value
from core.backends.sql.guard import ordered
from core.corpus import table_files
from core.corpus.load import readable_files
from core.domain.errors import Unavailable
from core.evaluation.dataset import Evidence, LabelledSet, Question, Written

if TYPE_CHECKING:
    from core.evaluation.outcome import Outcomes

METRIC = "execution_accuracy"
CLOSE = 1e-6  # numbers that differ by less, or by that share, are equal
WHOLE = Limits(seconds=10.0, rows=10_000, value=10_000, result=10_000_000)
PERMUTATIONS = 2_000  # orders of columns that are tried
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Executed:
    """By route and question 1 or 0, None where there is nothing to compare; ids whose gold query does not
    run, or returns more than can be compared, are `excluded`.
    """

    values: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    excluded: tuple[str, ...] = ()

    def remark(self) -> str | None:
        """What is to be said about it; None where nothing was excluded."""
        if not self.excluded:
            return None
        return (
            f"{METRIC}: {len(self.excluded)} questions are excluded, because their gold SQL does not run or "
            f"returns too much, for example {self.excluded[0]!r}"
        )


def measured(
    labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str], database: Database
) -> Executed:
    """Execution accuracy of every route that wrote SQL for some question.

    A question at which a route failed, or asked no table, has no value; one at which it gave up has 0.
    """
    gold: dict[str, Result] = {}
    excluded = []
    for question in labelled.questions:
        if question.sql and question.id in outcomes:
            result = _gold(question.sql, database)
            if result is None:
                excluded.append(question.id)
            else:
                gold[question.id] = result
    asked = {q.id: q for q in labelled.questions}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    for route in routes:
        found: dict[str, dict[str, float | None]] = {}
        for id, wanted in gold.items():
            outcome = outcomes[id].get(route)
            if outcome is not None and outcome.status == "ok" and "sql" in outcome.said:
                right = _right(outcome.said["sql"], wanted, asked[id].sql or "", database)
                found[id] = {METRIC: float(right)}
        if found:
            values[route] = found
    return Executed(values, tuple(excluded))


def execution_accuracy(question: Question, sql: str | None, database: Database) -> float | None:
    """1.0 if `sql` returns what the gold query of `question` does, else 0.0; None without a gold query that
    runs, or where no SQL was written (`sql` None; "" is a route that gave up, which is wrong).

    Source: Yu et al. 2018 (Spider), arXiv:1809.08887, section 5, as computed in the test suites of Zhong et
    al. 2020, arXiv:2010.02840: rows as a multiset, in order only if the gold query has ORDER BY at its top;
    the columns may stand in any order, their names do not count, their number does.
    """
    if not question.sql or sql is None:
        return None
    wanted = _gold(question.sql, database)
    return None if wanted is None else float(_right(sql, wanted, question.sql, database))


def _gold(sql: str, database: Database) -> Result | None:
    try:
        found = database.query(sql, limits=WHOLE)
    except SqlError:
        return None  # counted as excluded by whoever asks
    return None if found.truncated else found


def _right(sql: str, wanted: Result, gold: str, database: Database) -> bool:
    try:
        given = database.query(sql, limits=WHOLE)
    except SqlError:
        return False
    return not given.truncated and same(wanted.rows, given.rows, in_order=ordered(gold))


def same(wanted: Sequence[Row], given: Sequence[Row], *, in_order: bool) -> bool:
    """Whether two results are equal but for the order of columns, and of rows unless `in_order`."""
    if len(wanted) != len(given):
        return False
    if not wanted:
        return True
    if len(wanted[0]) != len(given[0]):
        return False
    for order in itertools.islice(_orders(wanted, given), PERMUTATIONS):
        turned = [tuple(row[at] for at in order) for row in given]
        if in_order and all(_equal(a, b) for a, b in zip(wanted, turned, strict=True)):
            return True
        if not in_order and _same_rows(wanted, turned):
            return True
    return False


def _orders(wanted: Sequence[Row], given: Sequence[Row]) -> Iterator[tuple[int, ...]]:
    """The orders of the given columns in which each holds what the wanted column there holds."""
    theirs = [_sorted([(row[at],) for row in given]) for at in range(len(given[0]))]
    fitting = []
    for at in range(len(wanted[0])):
        mine = _sorted([(row[at],) for row in wanted])
        fitting.append([n for n, column in enumerate(theirs) if _all_equal(mine, column)])

    def extend(taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(taken) == len(fitting):
            yield taken
            return
        for n in fitting[len(taken)]:
            if n not in taken:
                yield from extend((*taken, n))

    return extend(())


def _same_rows(wanted: Sequence[Row], given: Sequence[Row]) -> bool:
    if Counter(wanted) == Counter(given):
        return True
    return _all_equal(_sorted(wanted), _sorted(given))


def _all_equal(wanted: Sequence[Row], given: Sequence[Row]) -> bool:
    return all(_equal(a, b) for a, b in zip(wanted, given, strict=True))


def _equal(a: Row, b: Row) -> bool:
    return all(_equal_value(x, y) for x, y in zip(a, b, strict=True))


def _equal_value(a: Value, b: Value) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)
    return a == b


def _sorted(rows: Sequence[Row]) -> list[Row]:
    """NULL, numbers, texts; numbers as far as they count, so that a last digit does not reorder rows."""

    def key(row: Row) -> list[tuple[int, float, str]]:
        return [
            (0, 0.0, "") if value is None
            else (1, float(f"{value:.6g}"), "") if isinstance(value, int | float)
            else (2, 0.0, value)
            for value in row
        ]  # fmt: skip

    return sorted(rows, key=key)


def with_tables(written: Written, folder: Path) -> Written:
    """`written` with the tables that each gold query reads as its evidence, where the corpus' documents are
    the tables of its one database: finding them is what a search can do for such a question.
    """
    found = table_files.databases(folder)
    if len(found) != 1 or readable_files(folder) != found:
        return written
    try:
        database = Database(found[0], found[0].name)
    except Unavailable:
        return written  # the corpus itself says so when it is asked
    name = found[0].relative_to(folder).as_posix()
    evidence = dict(written.evidence)
    for question in written.questions:
        if question.sql and not evidence.get(question.id):
            try:
                read = database.reads(question.sql)
            except SqlError:
                continue  # its gold query does not run: it has no label
            evidence[question.id] = tuple(Evidence(f"{name}/{table}", 3, where=question.id) for table in read)
    return replace(written, evidence=evidence)
