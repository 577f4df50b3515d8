"""The times of many stored runs at once: their results with bare spans, without texts and rankings."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.domain import people
from core.domain.types import RouteResult, Span, Tokens
from core.store.rows import bind, parsed, text
from core.store.search import visible

NEWEST = 200  # runs that are read at most, unless more are asked for
RESULTS = 2000  # results that are read at most, but those of one run at least: more take over half a second


@dataclass(frozen=True, slots=True)
class Traces:
    """The newest runs' results, newest run first; each span has its name, kind, place, time, tokens, and
    where its result is from, but neither arguments nor output nor hits. A result has its answer, but no
    ranking.

    `runs` of the `of` runs that there are were read, with `results` by run id. `elsewhere` counts results
    that were left out: imported ones were timed on another machine.
    """

    runs: int
    of: int
    results: Mapping[str, tuple[RouteResult, ...]]
    elsewhere: int


def read(connection: sqlite3.Connection, corpus: str | None, limit: int) -> Traces:
    """Of the newest runs on `corpus` (None: on any) that are not deleted nor marked as under way, at most
    `limit` of them.
    """
    shown, values = visible(people.current())
    where = f"deleted = 0 AND status <> 'running' AND {shown}"
    if corpus is not None:
        where, values = f"{where} AND corpus = ?", [*values, bind(corpus)]
    of = int(connection.execute(f"SELECT count(*) FROM runs WHERE {where}", values).fetchone()[0])
    chosen = _newest(connection, where, values, limit)
    results: dict[str, list[RouteResult]] = {}
    elsewhere = 0
    for id, number in chosen:
        for row in connection.execute(
            "SELECT route, title, status, ms, answer, measured_on IS NOT NULL AS here, spans FROM results "
            "WHERE run = ? ORDER BY route, nth",
            (number,),
        ):
            if row["here"]:
                results.setdefault(id, []).append(_result(row))
            else:
                elsewhere += 1
    return Traces(len(chosen), of, {id: tuple(some) for id, some in results.items()}, elsewhere)


def _newest(
    connection: sqlite3.Connection, where: str, values: list[Any], limit: int
) -> list[tuple[str, int]]:
    """Ids and rows of the newest runs whose results can be read at once."""
    chosen: list[tuple[str, int]] = []
    count = 0
    for row in connection.execute(
        f"SELECT id, number, routes FROM runs WHERE {where} ORDER BY created DESC, id DESC LIMIT ?",
        (*values, limit),
    ):
        count += len(parsed(row["routes"]))
        if chosen and count > RESULTS:
            break
        chosen.append((text(row["id"]), int(row["number"])))
    return chosen


def _result(row: sqlite3.Row) -> RouteResult:
    return RouteResult(
        text(row["route"]),
        text(row["title"]),
        text(row["status"]),
        float(row["ms"]),
        answer=text(row["answer"]),
        spans=tuple(_span(span) for span in parsed(row["spans"])),
    )


def _span(given: Mapping[str, Any]) -> Span:
    tokens = given.get("tokens")
    return Span(
        given["id"],
        given["parent"],
        given["name"],
        given["kind"],
        given["start_ms"],
        given["ms"],
        tokens=None if tokens is None else Tokens(**tokens),
        cost=given.get("cost"),
        calls=given.get("calls", 0),
        shared_with=given.get("shared_with"),
        cached=given.get("cached"),
        error=given.get("error"),
    )
