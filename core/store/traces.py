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


# what is read of a span, with its tokens
BARE = "id parent name kind start_ms ms cost calls shared_with cached error"


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
    chosen: list[tuple[str, int]] = []  # ids and rows of the newest runs whose results can be read at once
    count = 0
    for row in connection.execute(
        f"SELECT id, number, routes FROM runs WHERE {where} ORDER BY created DESC, id DESC LIMIT ?",
        (*values, limit),
    ):
        count += len(parsed(row["routes"]))
        if chosen and count > RESULTS:
            break
        chosen.append((text(row["id"]), int(row["number"])))
    results: dict[str, list[RouteResult]] = {}
    elsewhere = 0
    for id, number in chosen:
        for row in connection.execute(
            "SELECT route, title, status, ms, answer, measured_on IS NOT NULL AS here, spans FROM results "
            "WHERE run = ? ORDER BY route, nth",
            (number,),
        ):
            if not row["here"]:
                elsewhere += 1
                continue
            route, title, status, answer = (text(row[one]) for one in ("route", "title", "status", "answer"))
            spans = tuple(map(_span, parsed(row["spans"])))
            result = RouteResult(route, title, status, float(row["ms"]), answer=answer, spans=spans)
            results.setdefault(id, []).append(result)
    return Traces(len(chosen), of, {id: tuple(some) for id, some in results.items()}, elsewhere)


def _span(given: Mapping[str, Any]) -> Span:
    bare = {name: given[name] for name in BARE.split() if name in given}
    tokens = given.get("tokens")
    return Span(**bare, tokens=None if tokens is None else Tokens(**tokens))
