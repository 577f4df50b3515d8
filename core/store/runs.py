"""Runs as rows and back; of a run that still grows only what is new is written."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from core.domain import jsonl
from core.domain.types import ASKED_BY, Passage, Query, RouteResult, Run, Turn
from core.store import codec, process_liveness, purge
from core.store.codec import Lists, dumps
from core.store.migrations import SCHEMA
from core.store.rows import bind, parsed, real, text
from core.store.search import index

REMEMBERED = 20_000  # passages whose row numbers are kept at hand
GROWING = 64  # running runs of which is known what is written
Key = tuple[str, int]  # route, and which of its results in the run

_OF_RUN = (
    "id created corpus fingerprint question history settings status wall_ms routes passages host pid born "
    "saved boot"
)
RUN_COLUMNS = tuple(_OF_RUN.split())
ONCE = ("maker", "private")  # who asked, and whether only they see it: whoever saves it later
_SAVE_RUN = (
    f"INSERT INTO runs ({', '.join((*RUN_COLUMNS, *ONCE))}) "
    f"VALUES ({', '.join('?' * len((*RUN_COLUMNS, *ONCE)))}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in RUN_COLUMNS[1:])} "
    "RETURNING number, tags, note"
)
_OF_RESULT = "title status ms start_ms wall_ms hits answer citations abstained parameters error spans"
RESULT_COLUMNS = tuple(_OF_RESULT.split())
KEEP_TEXT = "INSERT INTO texts (hash, text) VALUES (?, ?) ON CONFLICT DO NOTHING"
RECORDED = "recorded"  # a column with the rest of a result's document
JSON_COLUMNS = ("hits", "citations", "abstained", "parameters", "spans")
REAL_COLUMNS = ("ms", "start_ms", "wall_ms")
KNOWN = {"route", *RESULT_COLUMNS}


@dataclass(slots=True)
class _Grown:
    """The part of a running run that is in the file."""

    results: dict[Key, RouteResult] = field(default_factory=dict)
    lists: Lists = field(default_factory=dict)
    searched: tuple[str, str, str] | None = None


class RunWriter:
    """Writes runs through the writer's connection; only the writer's thread may call it."""

    def __init__(self) -> None:
        self._grown: dict[str, _Grown] = {}
        self._numbers: dict[Passage, int] = {}
        self._purged: int | None = None  # the newest deletion for good that is known here

    def forget(self) -> None:
        """Take nothing for written: it was rolled back, or the file is another one."""
        self._grown.clear()
        self._numbers.clear()

    def write(self, connection: sqlite3.Connection, run: Run, *, ours: bool = True) -> None:
        """Make the file hold exactly this run; tags, note and deletion stay. Raises BadInput, sqlite3.Error.

        `ours` says that it ran, or runs, here: its times count for the history of its routes. A run that was
        deleted for good meanwhile stays deleted.
        """
        codec.check(run)
        newest = purge.newest(connection)
        if newest != self._purged:  # by any process: rows that were known may be gone, or others' now
            self.forget()
            self._purged = newest
        if purge.is_purged(connection, run.id):
            return
        number, tags, note = self._write_row(connection, run, ours=ours)
        grown = self._grown.pop(run.id, None)
        if grown is None:
            grown = _Grown()
            for table in ("results", "rankings"):
                connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
        keys = _keys(result.route for result in run.results)
        results = dict(zip(keys, run.results, strict=True))
        self._write_results(connection, number, results, grown, run.corpus if ours else None)
        words = searched(run)
        if words != grown.searched:
            index(connection, number, *words, " ".join(parsed(tags)), text(note))
        if run.status == "running":
            if len(self._grown) >= GROWING:
                self._grown.clear()  # they will be written whole once more
            self._grown[run.id] = _Grown(results, grown.lists, words)

    def _write_row(self, connection: sqlite3.Connection, run: Run, *, ours: bool) -> tuple[int, Any, Any]:
        texts = [run.query.text, *(turn.text for turn in run.query.history)]
        hashes = [keep_text(connection, text) for text in texts]
        by = process_liveness.me() if ours else None
        row = {
            **{name: getattr(run, name) for name in ("id", "created", "corpus", "fingerprint", "status")},
            "question": hashes[0],
            "history": dumps([[t.role, h.hex()] for t, h in zip(run.query.history, hashes[1:], strict=True)]),
            "settings": dumps(run.settings),
            "wall_ms": real(run.wall_ms),
            "routes": dumps([result.route for result in run.results]),
            "passages": dumps(sorted(self._passage_numbers(connection, run.passages.values()))),
            **{name: by and getattr(by, name) for name in ("host", "pid", "born", "boot")},
            "saved": by and time.time(),
        }
        maker = str(run.settings.get(ASKED_BY, "")) if ours else ""
        values = [*(bind(row[c]) for c in RUN_COLUMNS), bind(maker), int(bool(maker))]
        found: tuple[int, Any, Any] = connection.execute(_SAVE_RUN, values).fetchone()
        return found

    def _write_results(
        self,
        connection: sqlite3.Connection,
        number: int,
        results: dict[Key, RouteResult],
        grown: _Grown,
        measured_on: str | None,
    ) -> None:
        known = len(grown.lists)
        rows, changed = [], {key: one for key, one in results.items() if grown.results.get(key) is not one}
        gone = [(number, *map(bind, k)) for k, one in grown.results.items() if results.get(k) is not one]
        connection.executemany("DELETE FROM results WHERE run = ? AND route = ? AND nth = ?", gone)
        for key, result in changed.items():
            document = codec.result_document(result, grown.lists)
            document[RECORDED] = jsonl.text(
                {name: value for name, value in document.items() if name not in KNOWN and value is not None}
            )
            document |= {column: jsonl.text(document[column]) for column in JSON_COLUMNS}
            document |= {column: real(document[column]) for column in REAL_COLUMNS}
            values = (*key, measured_on, *(document[column] for column in (*RESULT_COLUMNS, RECORDED)))
            rows.append([number, *map(bind, values)])
        columns = ("run", "route", "nth", "measured_on", *RESULT_COLUMNS, RECORDED)
        connection.executemany(
            f"INSERT INTO results ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows
        )
        new = list(grown.lists)[known:]
        connection.executemany(
            "INSERT INTO rankings (run, n, hits) VALUES (?, ?, ?)",
            [(number, n, bind(jsonl.text(hits))) for n, hits in enumerate(new, known)],
        )

    def _passage_numbers(self, connection: sqlite3.Connection, passages: Iterable[Passage]) -> list[int]:
        passages = list(passages)
        new = {p: _passage_row(p) for p in passages if p not in self._numbers}
        if len(self._numbers) + len(new) > REMEMBERED:
            self._numbers.clear()
            new = {p: _passage_row(p) for p in passages}
        connection.executemany(KEEP_TEXT, [(row[4], bind(p.text)) for p, row in new.items()])
        connection.executemany(
            'INSERT INTO passages (hash, id, doc_id, title, text, start, "end") '
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            new.values(),
        )
        for passage, row in new.items():
            found = connection.execute("SELECT number FROM passages WHERE hash = ?", row[:1]).fetchone()
            self._numbers[passage] = found[0]
        return [self._numbers[passage] for passage in passages]


def searched(run: Run) -> tuple[str, str, str]:
    """Question, answers and routes of a run, as it is found by them."""
    answers = "\n".join(result.answer for result in run.results if result.answer)
    return run.query.text, answers, " ".join(result.route for result in run.results)


def touch(connection: sqlite3.Connection) -> None:
    """Change nothing, but so that the commit is one: with synchronous=FULL it takes all before it to disk."""
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def written(connection: sqlite3.Connection, number: int) -> tuple[int, float] | None:
    """Return a key that changes whenever a finished run is written; None for a running or imported one."""
    row = connection.execute("SELECT status, saved FROM runs WHERE number = ?", (number,)).fetchone()
    return None if row["status"] == "running" or row["saved"] is None else (number, row["saved"])


def read(connection: sqlite3.Connection, number: int) -> Run:
    """Return the run in this row as saved; one left running by a dead process is interrupted."""
    row = connection.execute(
        "SELECT r.*, t.text AS question_text FROM runs r JOIN texts t ON t.hash = r.question "
        "WHERE number = ?",
        (number,),
    ).fetchone()
    stored = {
        (text(r["route"]), r["nth"]): r
        for r in connection.execute("SELECT * FROM results WHERE run = ?", (number,))
    }
    history = [(role, bytes.fromhex(hash)) for role, hash in parsed(row["history"])]
    rankings = connection.execute("SELECT hits FROM rankings WHERE run = ? ORDER BY n", (number,))
    passages = connection.execute(
        'SELECT p.id, p.doc_id, p.title, t.text, p.start, p."end" '
        "FROM passages p JOIN texts t ON t.hash = p.text "
        "WHERE p.number IN (SELECT CAST(value AS BIGINT) FROM json_each(CAST(? AS TEXT)))",
        (row["passages"],),
    )
    return codec.from_document(
        {name: text(row[name]) for name in ("id", "created", "corpus", "fingerprint")}
        | {
            "question": text(row["question_text"]),
            "history": [[role, _read_text(connection, hash)] for role, hash in history],
            "settings": parsed(row["settings"]),
            "status": process_liveness.status_now(row),
            "wall_ms": float(row["wall_ms"]),
            "results": [result_document(stored[key]) for key in _keys(parsed(row["routes"]))],
            "rankings": [parsed(r["hits"]) for r in rankings],
            "passages": [{c: text(p[c]) for c in p.keys()} for p in passages],  # noqa: SIM118 - a Row's keys
        }
    )


def asked(connection: sqlite3.Connection, corpus: str, limit: int) -> list[Query]:
    """Return the questions of the newest `limit` runs on a corpus, each with its conversation once."""
    found = connection.execute(
        "SELECT r.history, t.text FROM runs r JOIN texts t ON t.hash = r.question "
        "WHERE r.deleted = 0 AND r.corpus = ? ORDER BY r.created DESC, r.id DESC LIMIT ?",
        (bind(corpus), limit),
    ).fetchall()
    rows = [(text(row["text"]), parsed(row["history"])) for row in found]
    texts = {
        hash: _read_text(connection, bytes.fromhex(hash))
        for hash in {hash for _, history in rows for _, hash in history}
    }
    queries = (
        Query(said, tuple(Turn(role, texts[hash]) for role, hash in history)) for said, history in rows
    )
    return list(dict.fromkeys(queries))


def read_result(connection: sqlite3.Connection, run: str, route: str) -> RouteResult | None:
    """Return a route's result of a run with its steps; None without one. Passages have their ids alone."""
    row = connection.execute(
        "SELECT results.*, texts.text AS question "
        "FROM results JOIN runs ON runs.number = run JOIN texts ON texts.hash = runs.question "
        "WHERE route = ? AND nth = 0 AND runs.id = ?",
        (bind(route), bind(run)),
    ).fetchone()
    if row is None:
        return None
    result = result_document(row)
    numbers = sorted({span["hits"] for span in result["spans"] if span.get("hits") is not None})
    places = {number: at for at, number in enumerate(numbers)}
    for span in result["spans"]:
        if span.get("hits") is not None:
            span["hits"] = places[span["hits"]]
    marks = ", ".join("?" * len(numbers))
    lists = connection.execute(
        f"SELECT n, hits FROM rankings WHERE run = ? AND n IN ({marks}) ORDER BY n", (row["run"], *numbers)
    )
    document = {
        **dict.fromkeys(("id", "created", "corpus", "fingerprint"), ""),
        "settings": {},
        "question": text(row["question"]),
        "results": [result],
        "rankings": [parsed(one["hits"]) for one in lists],
        "passages": [{"id": id, "doc_id": "", "title": "", "text": ""} for id, _ in result["hits"]],
    }
    return codec.from_document(document).results[0]


def _keys(routes: Iterable[str]) -> list[Key]:
    seen: Counter[str] = Counter()
    keys = []
    for route in routes:
        keys.append((route, seen[route]))
        seen[route] += 1
    return keys


def result_document(row: sqlite3.Row) -> dict[str, Any]:
    """Convert a result's row to the document of `core.store.codec`; a read-only file may lack newer
    columns.
    """
    found: dict[str, Any] = (
        parsed(row[RECORDED])
        | {column: text(row[column]) for column in KNOWN}
        | {column: parsed(row[column]) for column in JSON_COLUMNS}
        | {column: float(row[column]) for column in REAL_COLUMNS}
    )
    return found


def _passage_row(passage: Passage) -> tuple[Any, ...]:
    named, of_text = (passage.id, passage.doc_id, passage.title), _hash(passage.text)
    of_all = _hash(dumps([*named, of_text.hex(), passage.start, passage.end]))
    return (of_all, *map(bind, named), of_text, passage.start, passage.end)


def keep_text(connection: sqlite3.Connection, text: str) -> bytes:
    """Keep a text once, however often it is used; the hash that rows name it by."""
    hash = _hash(text)
    connection.execute(KEEP_TEXT, (hash, bind(text)))
    return hash


def _read_text(connection: sqlite3.Connection, hash: bytes) -> str:
    row = connection.execute("SELECT text FROM texts WHERE hash = ?", (hash,)).fetchone()
    return str(text(row["text"]))


def _hash(text: str) -> bytes:
    return hashlib.sha256(codec.to_bytes(text)).digest()
