"""What routes asked a database, and what it returned: the query, its rows, the attempts before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from core.charts.look import milliseconds
from core.types import RouteResult, Run, Span
from ui.markup import EMPTY, cut, join, tag

SHOWN = 50  # rows
CELL = 200  # characters


def tables(run: Run) -> Markup:
    """Every query of every route with its rows; says so if there is none."""
    blocks = [_block(result, span) for result in run.results for span in queries(result)]
    if not blocks:
        return tag("div", "No route of this run asked a database.", css="rs dim")
    return tag("div", *blocks, css="rs")


def queries(result: RouteResult) -> Iterator[Span]:
    """The innermost steps that tell a query and the columns of its result."""
    telling = [span for span in result.spans if _tells(span)]
    outer = {span.parent for span in telling}
    yield from (span for span in telling if span.id not in outer)


def _tells(span: Span) -> bool:
    told = span.output
    return (
        isinstance(told, Mapping)
        and isinstance(told.get("sql"), str)
        and isinstance(told.get("columns"), list | tuple)
        and isinstance(told.get("rows"), list | tuple)
    )


def _block(result: RouteResult, span: Span) -> Markup:
    told: Mapping[str, Any] = span.output
    rows, database = told["rows"], told.get("database")
    facts = [str(database)] if database else []
    facts += [f"tables: {', '.join(map(str, told['tables']))}"] if told.get("tables") else []
    facts.append(milliseconds(span.ms))
    head = tag("h4", result.title, tag("span", f"  {span.name} · ", " · ".join(facts), css="dim"))
    decided = tag("b", str(told.get("decision") or "")), tag("span", f"  {told.get('why') or ''}", css="dim")
    return tag(
        "div",
        head,
        tag("div", *decided),
        _code(told["sql"]) if told["sql"] else EMPTY,
        _earlier(told.get("attempts") or ()),
        _rows(told["columns"], rows, str(told.get("truncated") or "")),
        css="rs-block",
    )


def _code(sql: str) -> Markup:
    return tag("pre", tag("code", sql), dir="ltr")


def _earlier(attempts: Sequence[Any]) -> Markup:
    """The attempts that came to nothing, each with what was wrong."""
    failed = [one for one in attempts if isinstance(one, Mapping) and one.get("error")]
    return join(
        [
            tag(
                "div",
                tag("span", f"Attempt {number} ", css="dim"),
                tag("code", cut(str(one.get("sql") or "no query"), 600)),
                tag("span", f" {one['error']}", css="bad"),
                dir="ltr",
            )
            for number, one in enumerate(failed, 1)
        ]
    )


def _rows(columns: Sequence[Any], rows: Sequence[Any], truncated: str) -> Markup:
    count = f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}"
    said = [
        count,
        *([f"the first {SHOWN} are shown"] if len(rows) > SHOWN else []),
        *filter(None, [truncated]),
    ]
    note = tag("div", " · ".join(said), css="dim")
    if not rows:
        return note
    head = tag("tr", *[tag("th", cut(str(name), CELL)) for name in columns])
    body = [tag("tr", *[_cell(value) for value in row]) for row in rows[:SHOWN]]
    return tag("table", tag("thead", head), tag("tbody", *body), css="rs-table") + note


def _cell(value: object) -> Markup:
    if value is None:
        return tag("td", "NULL", css="dim")
    number = isinstance(value, int | float)
    return tag("td", cut(str(value), CELL), css="num" if number else "", dir="" if number else "auto")
