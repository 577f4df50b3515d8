"""Dense search by pgvector and full-text search by PostgreSQL, over a table of passages.

pgvector finds the candidates; their scores are computed here, in the way of the local index, so that both
give equal rankings for equal vectors. Names of tables and columns are quoted by psycopg.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from core.backends.base import Matrix, Rows, Vector
from core.backends.postgres import Connection, PostgresServer
from core.backends.vector import MARGIN, SAME, SEARCH_EFFORT
from core.domain.errors import BadInput, Unavailable
from core.domain.filters import Filter

if TYPE_CHECKING:
    from psycopg.sql import Composable

MOST_EFFORT = 1_000  # ef_search; pgvector's own limit
SCANNED = 200_000  # rows that an iterative scan looks at before it gives up
WORDS_OF = 200_000  # characters of a passage that are indexed by full text: PostgreSQL holds 1 MiB of words
NUMBER = r"^[+-]?[0-9]{1,30}(\.[0-9]{1,30})?$"
Where = Sequence[Filter]
StatementSettings = Sequence[tuple[str, str]]  # name and value, for one statement


@dataclass(frozen=True)
class PassageTable:
    """The SQL parts of a table of passages, whose columns id, document, title, text, start, stop and meta
    have these names.
    """

    relation: Composable
    key: Composable  # names a row
    match: Composable  # tests whether a row is among a list (one %s)
    vector: Composable
    dim: int
    row_of: Callable[[Sequence[Any]], list[int | None]]  # this corpus' rows of keys; None for an unknown key
    key_of: Callable[[Sequence[int]], list[Any]]  # the keys of rows
    operator: str = "<#>"  # compares vectors as the index does
    type: str = "vector"
    unit: bool = True  # whether all vectors have length 1
    index: str = ""  # "hnsw", "ivfflat"; "" where every vector is compared
    # the SQL of a metadata field, and whether it is text out of JSON; None for an unknown field
    meta: Callable[[str], tuple[Composable, bool] | None] = field(default=lambda _: None)
    fields: tuple[str, ...] | None = None  # of the metadata, where they are known
    # the tsvector of the full text in configuration `language`; None if there is none, explained by
    # `wordless`
    words: Composable | None = None
    language: str = "simple"
    wordless: str = ""
    documents: Composable | None = None  # lists and finds documents; None if each passage is one


class PgVectorIndex:
    """Inner-product search over unit vectors by pgvector; equal scores come in the order of rows.

    As `FaissIndex`, which it stands in for. Safe to call from several threads.
    """

    def __init__(self, server: PostgresServer, table: PassageTable, size: int) -> None:
        self._server, self._table, self.size, self.dim = server, table, size, table.dim
        self.shape = size, table.dim  # of all vectors, as an array has it

    @property
    def kind(self) -> str:
        """ "flat" when search is exact, else "hnsw" or "ivfflat"."""
        return self._table.index or "flat"

    def search(self, vector: Vector, k: int, *, effort: int = 0, where: Where = ()) -> Rows:
        """Return the `k` rows of highest inner product with `vector`, shape (dim,), that match `where`.
        `effort` is ef_search, 0 for the default.
        """
        return self._search(vector, k, exact=not self._table.index, effort=effort, where=where)

    def search_many(self, vectors: Matrix, k: int) -> list[Rows]:
        """`search` for each row of `vectors` (n, dim)."""
        return [self.search(vector, k) for vector in vectors]

    def near_many(self, vectors: Matrix, k: int) -> list[Rows]:
        """`search_many`; of scores that are equal at the end, any."""
        exact = not self._table.index
        return [self._candidates(vector, k, exact=exact)[:k] for vector in vectors]

    def search_exact(self, vector: Vector, k: int, *, where: Where = ()) -> Rows:
        """`search` past the index: what an approximate search is measured against."""
        return self._search(vector, k, exact=True, where=where)

    def recall(
        self, sample: Sequence[int], k: int = 10, *, effort: int = 0, seconds: float = math.inf
    ) -> float:
        """Return the share of the exact `k` nearest that `search` finds, using as many rows of `sample` as
        questions as fit into `seconds`, at least one.
        """
        shares: list[float] = []
        end = time.monotonic() + seconds
        for row in sample:
            if shares and time.monotonic() > end:
                break
            vector = self[[row]][0]
            found, truth = dict(self.search(vector, k, effort=effort)), dict(self.search_exact(vector, k))
            shares.append(len(found.keys() & truth.keys()) / max(1, len(truth)))
        return float(np.mean(shares)) if shares else 1.0

    def __getitem__(self, rows: Sequence[int]) -> Matrix:
        """Return the unit vectors of `rows`, shape (n, dim), in order."""
        table, keys = self._table, self._table.key_of(rows)
        parts = (table.key, self._read(), table.relation, table.match)
        found = dict(self._fetched(composed("SELECT {}, {} FROM {} WHERE {}", *parts), (keys,), binary=True))
        if missing := [key for key in keys if key not in found]:
            raise BadInput(f"{self._server.dsn} no longer has the passage {missing[0]!r}")
        return self._unpacked([found[key] for key in keys])

    def meeting(self, where: Where) -> list[int]:
        """Return the rows that match `where`, unordered."""
        condition, values = self._where(where)
        table = self._table
        statement = composed("SELECT {} FROM {} WHERE true {}", table.key, table.relation, condition)
        rows = table.row_of([key for (key,) in self._fetched(statement, values)])
        return [row for row in rows if row is not None]

    def full_text(self, text: str, k: int, where: Where = ()) -> Rows:
        """Return the `k` rows of highest ts_rank_cd for any of the words of `text`, ties by row; rows without
        a common word are not hits. Unlike BM25 it measures how near words are, not how rare.

        Source: Clarke, Cormack & Tudhope 1999, "Relevance Ranking for One to Three Term Queries".
        """
        table = self._table
        if table.words is None:
            raise Unavailable(table.wordless)
        condition, values = self._where(where)
        statement = composed(
            "WITH asked AS (SELECT string_agg('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''')"
            " || '''', ' | ')::tsquery AS q FROM unnest(to_tsvector(%s::regconfig, %s)))"
            " SELECT {key}, ts_rank_cd({words}, q)::float8 AS score FROM {relation}, asked"
            " WHERE {words} @@ q {where} ORDER BY score DESC, {key} LIMIT %s",
            key=table.key,
            words=table.words,
            relation=table.relation,
            where=condition,
        )
        found = self._fetched(statement, (table.language, _plain(text), *values, k))
        rows = table.row_of([key for key, _ in found])
        scored = [(row, score) for row, (_, score) in zip(rows, found, strict=True) if row is not None]
        return sorted(scored, key=lambda one: (-one[1], one[0]))

    def _fetched(
        self,
        statement: Composable,
        values: Sequence[Any],
        settings: StatementSettings = (),
        *,
        binary: bool = False,
    ) -> list[Any]:
        """Return the rows of a statement, run under `settings`."""

        def read(connection: Connection) -> list[Any]:
            for name, value in settings:
                connection.execute("SELECT set_config(%s, %s, true)", (name, value))
            return list(connection.cursor(binary=binary).execute(statement, values).fetchall())

        return self._server.read(read)

    def _search(self, vector: Vector, k: int, *, exact: bool, effort: int = 0, where: Where = ()) -> Rows:
        k = min(k, self.size)
        if k < 1:
            return []
        fetched = min(self.size, k + MARGIN)
        ranked = self._candidates(vector, fetched, exact=exact, effort=effort, where=where)
        # Equal scores may go on past what was fetched: look further until they end.
        while len(ranked) >= fetched > k and fetched < self.size and ranked[-1][1] >= ranked[k - 1][1] - SAME:
            fetched = min(self.size, fetched * 8)
            ranked = self._candidates(vector, fetched, exact=exact, effort=effort, where=where)
        if where and not exact and len(ranked) < k:  # so few match that the index gave up before it had them
            return self._search(vector, k, exact=True, where=where)
        return ranked[:k]

    def _candidates(self, vector: Vector, k: int, *, exact: bool, effort: int = 0, where: Where = ()) -> Rows:
        """Return the rows the server finds nearest, with our scores, best first."""
        found = self._fetched(*self._statement(vector, k, exact, effort, where), binary=True)
        numbers = self._table.row_of([key for key, _ in found])
        known = [(row, raw) for row, (_, raw) in zip(numbers, found, strict=True) if row is not None]
        rows = np.array([row for row, _ in known], np.int64)
        scores = (self._unpacked([raw for _, raw in known]) * vector).sum(axis=1)
        order = np.lexsort((rows, -scores))
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))

    def _statement(
        self, vector: Vector, k: int, exact: bool, effort: int, where: Where
    ) -> tuple[Composable, Sequence[Any], StatementSettings]:
        table = self._table
        condition, values = self._where(where)
        # A sum is no expression of an index: all vectors are compared.
        distance = f"{{vector}} {table.operator} %s::{table.type}"
        statement = composed(
            "SELECT {key}, {read} FROM {relation} WHERE {vector} IS NOT NULL {where} ORDER BY "
            + (f"({distance}) + 0" if exact else distance)
            + " LIMIT %s",
            key=table.key,
            read=self._read(),
            vector=table.vector,
            relation=table.relation,
            where=condition,
        )
        given = "[" + ",".join(map(str, np.asarray(vector, np.float32).tolist())) + "]"
        settings: list[tuple[str, str]] = []
        if not exact:
            settings.append(("enable_seqscan", "off"))  # what is called a search by index is one
            if table.index == "hnsw":
                settings += [
                    ("hnsw.ef_search", str(min(MOST_EFFORT, effort or max(SEARCH_EFFORT, k)))),
                    ("hnsw.iterative_scan", "strict_order"),
                    ("hnsw.max_scan_tuples", str(SCANNED)),
                ]
            elif table.index == "ivfflat":
                settings += [("ivfflat.iterative_scan", "relaxed_order")]
                settings += [("ivfflat.probes", str(effort))] if effort else []
        return statement, (*values, given, k), settings

    def _where(self, where: Where) -> tuple[Composable, list[Any]]:
        """Return the conditions as SQL starting with AND, and their values."""
        parts: list[Composable] = []
        values: list[Any] = []
        for one in where:
            found = self._table.meta(one.field)
            if found is None:
                known = ", ".join(self._table.fields or ("not listed",))
                raise BadInput(f"this corpus has no metadata {one.field!r}; known: {known}")
            column, from_json = found
            given = [_plain(str(value)) for value in one.values]
            if from_json and one.operator in ("<", ">", "<=", ">=") and re.match(NUMBER, given[0]):
                number = literal(NUMBER)
                column = composed("CASE WHEN {0} ~ {1} THEN ({0})::numeric END", column, number)
            holds = f"{{}} {one.operator} %s"
            if one.operator in ("~", "!~"):
                given = ["%" + re.sub(r"([\\%_])", r"\\\1", value) + "%" for value in given]
                holds = f"coalesce(({{}})::text, '') {'ILIKE' if one.operator == '~' else 'NOT ILIKE'} %s"
            elif one.operator == "!=":
                holds = "{} IS DISTINCT FROM %s"
            elif one.operator == "in":
                holds = f"{{}} IN ({', '.join(['%s'] * len(given))})"
            parts.append(composed(f" AND {holds}", column))
            values += given
        return composed("{}" * len(parts), *parts), values

    def _read(self) -> Composable:
        """Return the SQL that fetches a vector as four-byte numbers, whatever its stored type."""
        return composed("{}" if self._table.type == "vector" else "{}::vector", self._table.vector)

    def _unpacked(self, raw: Sequence[bytes]) -> Matrix:
        """Vectors as pgvector sends them: two numbers of two bytes, then four bytes each, big end first."""
        made = np.frombuffer(b"".join(one[4:] for one in raw), ">f4").astype(np.float32)
        made = made.reshape(len(raw), self.dim)
        if not self._table.unit:
            made = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), np.float32(1e-12))
        return made


def composed(text: str, *parts: Composable, **named: Composable) -> Composable:
    """Put parts into the braces of a statement's text, which holds no value from outside."""
    from psycopg import sql

    return sql.SQL(text).format(*parts, **named)


def quoted(*names: str) -> Composable:
    """Quote a name of a table or column for a statement with parameters, where a literal % must be
    doubled.
    """
    from psycopg import sql

    return sql.SQL(sql.Identifier(*names).as_string().replace("%", "%%"))


def literal(value: str) -> Composable:
    """Quote a text for a statement with parameters."""
    from psycopg import sql

    return sql.SQL(sql.Literal(value).as_string().replace("%", "%%"))


def _plain(text: str) -> str:
    """Replace characters that PostgreSQL cannot hold; they are not in any index either."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
