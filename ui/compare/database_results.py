"""Database queries of routes, and what they returned: the query, its rows, the attempts before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from core.analysis.run_view import Recorded, recorded
from core.domain.format import milliseconds
from core.domain.outputs import Attempt, TableResult
from core.domain.types import RouteResult, Run
from ui.app.markup import EMPTY, cut, join, table_of, tag

MAX_ROWS = 50  # rows
CELL = 200  # characters


def tables(run: Run) -> Markup:
    """Return every query of every route with its rows, or a note if there is none."""
    blocks = [_block(result, one) for result in run.results for one in queries(result)]
    if not blocks:
        return tag("div", "No route in this run queried a database.", css="rs dim")
    return tag("div", *blocks, css="rs")


def queries(result: RouteResult) -> list[Recorded[TableResult]]:
    """Return the innermost steps that queried a database."""
    found = recorded(result.spans, TableResult)
    outer = {one.span.parent for one in found}
    return [one for one in found if one.span.id not in outer]


def _block(result: RouteResult, one: Recorded[TableResult]) -> Markup:
    result_table = one.output
    facts = [result_table.database] if result_table.database else []
    facts += [f"tables: {', '.join(result_table.tables)}"] if result_table.tables else []
    facts.append(milliseconds(one.span.ms))
    head = tag("h4", result.title, tag("span", f"  {one.span.name} · ", " · ".join(facts), css="dim"))
    return tag(
        "div",
        head,
        tag("div", tag("b", result_table.decision), tag("span", f"  {result_table.why}", css="dim")),
        _code(result_table.sql) if result_table.sql else EMPTY,
        _earlier(result_table.attempts),
        _shown(result_table),
        _rows(result_table.columns, result_table.rows, result_table.truncated),
        css="rs-block",
    )


def _code(sql: str) -> Markup:
    return tag("pre", tag("code", sql), dir="ltr")


def _earlier(attempts: Sequence[Attempt]) -> Markup:
    """Return the attempts if there were several or one failed: query, error, and what the model was told."""
    if len(attempts) < 2 and not any(one.error for one in attempts):
        return EMPTY
    return join(
        [
            tag(
                "div",
                tag("div", f"Told before: {one.repairs}", css="dim") if one.repairs else EMPTY,
                tag("span", f"Attempt {number} ", css="dim"),
                tag("code", cut(one.sql or "no query", 600)),
                tag("span", f" {one.error}", css="bad") if one.error else EMPTY,
                dir="ltr",
            )
            for number, one in enumerate(attempts, 1)
        ]
    )


def _shown(result: TableResult) -> Markup:
    """List what the model was given to write the query: values, joins, and whether a grammar bounded it."""
    facts = []
    if result.links:
        facts.append(("Values of the question", result.links))
    if result.joins:
        facts.append(("Joins", result.joins))
    lines = [
        tag("div", tag("span", f"{name}: ", css="dim"), cut("; ".join(values), 1_000), dir="auto")
        for name, values in facts
    ]
    if result.bounded:
        lines.append(tag("div", "Only tables, columns and joins that exist could be written.", css="dim"))
    return join(lines)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], truncated: str) -> Markup:
    count = f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}"
    facts = [
        count,
        *([f"showing the first {MAX_ROWS}"] if len(rows) > MAX_ROWS else []),
        *filter(None, [truncated]),
    ]
    note = tag("div", " · ".join(facts), css="dim")
    if not rows:
        return note
    head = tag("tr", *[tag("th", cut(name, CELL)) for name in columns])
    body = [tag("tr", *[_cell(value) for value in row]) for row in rows[:MAX_ROWS]]
    return table_of(head, body) + note


def _cell(value: object) -> Markup:
    if value is None:
        return tag("td", "NULL", css="dim")
    number = isinstance(value, int | float)
    return tag("td", cut(str(value), CELL), css="num" if number else "", dir="" if number else "auto")
