"""A PostgreSQL table as a corpus, read-only: [corpora.NAME] of the settings file.

Only the hits of runs are copied. Its sorted ids are kept in memory, so that rows mean the same while it is
open, and so is a BM25 index of its texts if there are few enough. Rows without an id, a text or a vector are
omitted and counted.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import shutil
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.backends import sparse
from core.backends.base import Rows
from core.backends.embedder import embedder_identity
from core.backends.pgvector import WORDS_OF, PassageTable, PgVectorIndex, literal, quoted
from core.backends.postgres import VECTOR_EXTENSION, Connection, PostgresServer
from core.backends.terms import Analyzer, analyzer
from core.corpus.chunk import WHOLE
from core.corpus.manifest import CorpusInfo, now
from core.corpus.passages import Listed
from core.corpus.served import (
    AT_ONCE,
    ServedCorpus,
    ServedPassages,
    Shape,
    compose,
    configuration,
    metadata,
    server_of,
)
from core.corpus.source import Source, is_slug
from core.corpus.types import Document
from core.domain.errors import BadInput, RouteScopeError, Unavailable
from core.domain.once import Once
from core.domain.postgres import Dsn, escaped, unescaped
from core.domain.program import COMMAND
from core.domain.settings import CorpusSettings, Settings
from core.domain.text import composed
from core.domain.types import Hit, Passage, Ranking

if TYPE_CHECKING:
    from psycopg.sql import Composable

log = logging.getLogger(__name__)
LOOK_AGAIN_S = 5.0  # a table is looked at for changes no more often
LONGEST = 100_000  # characters of a passage that are read: a text of 50 MB is no passage
BM25_UP_TO = 100_000  # passages whose texts are indexed in memory
WORDS_UP_TO = 50_000  # passages that full text searches without an index of the server's
SAMPLE, SAMPLE_S = 100, 10.0  # passages used as questions to measure recall, and the longest it may take
TEXTS = ("text", "character varying", "character")
OWN = (("id", "own"), ("vector", "vector"))  # columns of the settings, and what they are called when searched
OPERATORS = {"ip": "<#>", "cosine": "<=>", "l2": "<->"}


@dataclass(frozen=True, slots=True)
class Found:
    """The state of a table, enough to detect a change."""

    oid: int
    table: tuple[str, ...]
    types: Mapping[str, str]  # of the columns, by name
    dim: int
    index: str  # kind of the vectors' index
    operator: str  # the operator the index serves
    words: str  # an indexed expression for full text; "" without one
    language: str  # its configuration
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Examined:
    """The content of a table."""

    info: CorpusInfo
    ids: tuple[str, ...]
    unit: bool  # True if all vectors have length 1


_looked: Once[tuple[str, str], tuple[float, Found | RouteScopeError]] = Once(64)
_known: Once[tuple[str, str], Examined] = Once(16)  # by name and fingerprint


def names(settings: Settings) -> list[str]:
    """Return the corpora of the settings file that are tables, sorted."""
    return sorted(name for name, one in settings.corpora.items() if one.table and is_slug(name))


def look(name: str, settings: Settings) -> Found:
    """Return the state of a table, at most `LOOK_AGAIN_S` old. Raises BadInput for a table that cannot be a
    corpus, Unavailable if it cannot be read.
    """
    spec = settings.corpora[name]

    def looked() -> tuple[float, Found | RouteScopeError]:
        try:
            return time.monotonic(), _server(spec).read(lambda c: _look(c, name, spec, settings))
        except RouteScopeError as error:  # not asked again at each click either
            return time.monotonic(), error

    key = name, repr(spec) + spec.dsn.get_secret_value() + settings.embedder
    _, found = _looked.get(key, looked, lambda seen: time.monotonic() - seen[0] < LOOK_AGAIN_S)
    if isinstance(found, RouteScopeError):
        raise found
    return found


def _server(spec: CorpusSettings) -> PostgresServer:
    return server_of(Dsn(spec.dsn.get_secret_value()))


@cache
def warn(text: str) -> None:
    """Log a warning once: pages ask at each click."""
    log.warning("%s", text)


@dataclass(frozen=True, slots=True)
class Table:
    """A table in place by its name in the settings, before it is opened; see `catalogue.Held`."""

    name: str
    settings: Settings

    @property
    def source(self) -> Source:
        """Return the table as a source of a corpus."""
        spec = self.settings.corpora[self.name]
        dsn = Dsn(spec.dsn.get_secret_value())
        title = f"table {spec.table} in {dsn}"
        return Source(self.name, "table", None, WHOLE, spec.language, title, place=dsn.plain())

    def info(self) -> CorpusInfo:
        """Return the record of the table, which is read once per state."""
        return _examined(self.name, self.settings).info

    def fingerprint(self) -> str | None:
        """Return a value that changes with rows, columns or indexes, by the server's statistics, within
        seconds; None if the table cannot be read.
        """
        try:
            return look(self.name, self.settings).fingerprint
        except RouteScopeError as error:
            warn(f"{error}, so the corpus counts as not built")
            return None

    def text_size(self) -> tuple[int, int] | None:
        """Return the number of passages and the bytes (UTF-8) of their texts and titles."""
        try:
            passages = self.info().passages
            if passages > self.settings.llm_context:
                return passages, 0
            spec, found = self.settings.corpora[self.name], look(self.name, self.settings)
            ids = _examined(self.name, self.settings).ids
            return TablePassages(_server(spec), _shape(spec, found), ids).size()
        except RouteScopeError:
            return None  # `fingerprint` said why

    def no_bm25(self) -> str | None:
        """Explain why the table has no BM25, or None; one that cannot be read counts as not built."""
        try:
            return _no_bm25(self.name, self.info().passages)
        except RouteScopeError:
            return None

    def no_full_text(self) -> str | None:
        """Return None: PostgreSQL searches every table."""
        return None

    def missing_vectors(self) -> str | None:
        """Return None: its vectors are those of its own column."""
        return None

    def open(self) -> TableCorpus:
        """Open the table. Raises BadInput, Unavailable."""
        return TableCorpus(self.name, self.settings)


def _no_bm25(name: str, passages: int) -> str | None:
    """Explain why a table of that many passages has no BM25, with a remedy; None if it has."""
    if passages <= BM25_UP_TO:
        return None
    return (
        f"corpus {name} is a table of {passages:,} passages, and BM25 is held in memory for {BM25_UP_TO:,} at"
        f" most: use the route full_text, or export its texts and index them with {COMMAND} index PATH --in"
        " postgresql://..."
    )


class TableCorpus(ServedCorpus):
    """A table in place, opened."""

    def __init__(self, name: str, settings: Settings) -> None:
        spec = settings.corpora[name]
        found = look(name, settings)
        known = _examined(name, settings)
        info, ids = known.info, known.ids
        store = TablePassages(_server(spec), _shape(spec, found), ids)
        index = PgVectorIndex(_server(spec), _table(spec, found, ids, unit=known.unit), len(ids))
        words = _bm25(store, info) if _no_bm25(name, info.passages) is None else None
        self._open(info, store, index, words, index)
        self.chosen = True  # its embedder is that of its vectors, whatever the setting says

    @property
    def _words(self) -> sparse.BM25Index:
        if self._found_words is None:
            raise Unavailable(_no_bm25(self.name, self.size) or f"corpus {self.name} has no BM25 index")
        return self._found_words

    @property
    def analyzer(self) -> Analyzer:
        """Return the analyzer that converts texts to terms, also without a BM25 index."""
        return analyzer(self.info.language)

    def _hits(self, rows: Rows) -> Ranking:
        """Return the hits that were not deleted since the search."""
        found = self._store.at([row for row, _ in rows])
        return tuple(Hit(found[row], score) for row, score in rows if row in found)


class TablePassages(ServedPassages):
    """The passages of a table in place; `ids` sorted, a row is a place among them. An id is shown composed,
    as labels have it, unless another row has the composed one.
    """

    def __init__(self, server: PostgresServer, shape: Shape, ids: Sequence[str]) -> None:
        super().__init__(server, shape)
        self._ids = ids
        self._own: dict[str, str] = {}
        for id in ids:
            if not id.isascii() and place(ids, composed(id)) is None:
                self._own.setdefault(composed(id), id)
        self._shown = {id: shown for shown, id in self._own.items()}

    def _passage(self, found: Sequence[Any]) -> Passage:
        passage = super()._passage(found)
        id = self._shown.get(passage.id, passage.id)
        return replace(passage, id=id, doc_id=id)

    def _keys(self, rows: Sequence[int]) -> list[Any]:
        return [escaped(self._ids[row]) for row in rows if 0 <= row < len(self._ids)]

    def _row(self, key: Any) -> int:
        row = place(self._ids, unescaped(key))
        return -1 if row is None else row

    def _rows_of(self, ids: Sequence[str]) -> list[int]:
        return [row for id in ids if (row := place(self._ids, self._own.get(id, id))) is not None]

    def document(self, id: str) -> tuple[Document, list[Passage]] | None:
        """Each passage is a document; None when there is none of that id."""
        row = self.row(id)
        found = list(self._lines([row])) if row is not None else []
        if not found:
            return None
        _, passage, meta = found[0]
        return Document(id, passage.title, passage.text, meta), [passage]

    def spanning(self, document: str, start: int, end: int) -> list[Passage]:
        """Return the passage, if it has characters in [start, end)."""
        return [one for one in self.by_ids([document]).values() if one.start < end and one.end > start]

    def documents(self, holding: str = "", after: str = "", limit: int = 100) -> list[Listed]:
        """Up to `limit` documents by id, from the one behind `after`, whose id or title holds `holding`."""
        sought = escaped(holding.strip())
        found = self._fetch(
            'SELECT id, title, stop FROM {relation} AS p WHERE id COLLATE "C" > %s AND (strpos(lower(id),'
            ' lower(%s)) > 0 OR strpos(lower(title), lower(%s)) > 0) ORDER BY id COLLATE "C" LIMIT %s',
            (escaped(self._own.get(after, after)), sought, sought, limit),
        )
        own = ((unescaped(id), unescaped(title), stop) for id, title, stop in found)
        return [Listed(self._shown.get(id, id), title, 1, stop) for id, title, stop in own]

    def everything(self) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
        """In the order of rows, which the server's order of ids need not be; what came later is left out."""
        for start in range(0, len(self._ids), AT_ONCE):
            yield from self._lines(range(start, min(start + AT_ONCE, len(self._ids))))

    def _lines(self, rows: Sequence[int]) -> Iterator[tuple[int, Passage, Mapping[str, str]]]:
        statement = "SELECT {select}, {meta} FROM {relation} AS p WHERE {match}"
        found = self._fetch(statement, (self._keys(rows),))
        for key, *parts, meta in sorted(found, key=lambda line: self._row(line[0])):
            yield self._row(key), self._passage(parts), metadata(meta)


def place(ids: Sequence[str], id: str) -> int | None:
    """Return the row of an id, or None if it does not exist."""
    at = bisect_left(ids, id)
    return at if at < len(ids) and ids[at] == id else None


def _bm25(store: TablePassages, info: CorpusInfo) -> sparse.BM25Index:
    """Build a BM25 index of the texts in memory: its files are deleted once they are mapped."""
    folder = Path(tempfile.mkdtemp(prefix="routescope-bm25-"))
    try:
        sparse.write_index(store.texts(), folder / "bm25", analyzer(info.language))
        return sparse.BM25Index(folder / "bm25", info.passages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _look(connection: Connection, name: str, spec: CorpusSettings, settings: Settings) -> Found:
    """Return the state of a table. Raises BadInput for one that cannot be a corpus, Unavailable."""
    where, dsn = f"[corpora.{name}]", Dsn(spec.dsn.get_secret_value())
    if not is_slug(name):
        raise BadInput(f"{where}: a corpus cannot be called {name!r}; use letters a-z, digits, dashes")
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        raise Unavailable(f"{where}: pgvector is not switched on in {dsn}: {VECTOR_EXTENSION}")
    oid, table = _oid(connection, spec.table)
    if oid is None:
        raise BadInput(f"{where}: there is no table {spec.table!r} in {dsn} that its role may see")
    rows = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, NULL), t.typname, a.atttypmod,"
        " has_column_privilege(a.attrelid, a.attnum, 'SELECT') FROM pg_attribute a"
        " JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = %s AND a.attnum > 0"
        " AND NOT a.attisdropped ORDER BY a.attnum",
        (oid,),
    ).fetchall()
    columns = {column: facts for column, *facts in rows}
    types = {column: kind for column, kind, *_ in rows}
    texts = [spec.text, *([spec.title] if spec.title else [])]
    for column in (spec.id, spec.vector, *texts, *spec.metadata):
        if column not in types:
            raise BadInput(
                f"{where}: table {spec.table} has no column {column!r}; it has: {', '.join(types)}"
            )
        if not columns[column][-1]:
            raise Unavailable(
                f"{where}: the role {connection.info.user!r} may not read column {column!r} of "
                f"{spec.table}; its owner can: GRANT SELECT"
            )
    _, kind, modifier, _ = columns[spec.vector]
    if kind not in ("vector", "halfvec"):
        raise BadInput(
            f"{where}: column {spec.vector!r} is of type {types[spec.vector]}; a corpus needs vector or "
            f"halfvec of pgvector: ALTER TABLE ... ALTER COLUMN ... TYPE vector(N)"
        )
    if wrong := next((column for column in texts if types[column] not in TEXTS), None):
        raise BadInput(f"{where}: column {wrong!r} is of type {types[wrong]}; a corpus needs text")
    dim = modifier if modifier > 0 else _dimensions(connection, spec, table, where)
    index, operator = _vector_index(connection, oid, spec.vector)
    words, language = _word_index(connection, oid, spec)
    named = spec.model_dump(mode="json", exclude={"dsn"})
    by = embedder_identity(spec.embedder or settings.embedder, settings)
    state = (types, dim, index, operator, words, language)
    # Rows ever inserted, changed and deleted, partitions included.
    changes = connection.execute(
        "SELECT coalesce(sum(n_tup_ins), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint,"
        " coalesce(sum(n_tup_del), 0)::bigint FROM pg_stat_all_tables WHERE relid = %s::oid OR relid IN"
        " (SELECT relid FROM pg_partition_tree(%s::oid::regclass))",
        (oid, oid),
    ).fetchone()
    facts = [dsn.plain(), named, oid, *state, by, list(changes)]
    return Found(oid, table, *state, hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16])


def _oid(connection: Connection, table: str) -> tuple[int | None, tuple[str, ...]]:
    """Find the table of a name, or of a schema and a name separated by a dot, and the parts of its name."""
    from psycopg import sql

    for parts in ((table,), tuple(table.split(".", 1))):
        said = sql.Identifier(*parts).as_string(connection)
        found = connection.execute("SELECT to_regclass(%s)::oid::bigint", (said,)).fetchone()
        if found[0] is not None:
            return int(found[0]), parts
    return None, ()


def _dimensions(connection: Connection, spec: CorpusSettings, table: tuple[str, ...], where: str) -> int:
    """Return the dimensions that all vectors of a column have, which does not say them."""
    statement = "SELECT DISTINCT vector_dims({v}::vector) FROM {t} WHERE {v} IS NOT NULL LIMIT 3"
    made = compose(statement, v=quoted(spec.vector), t=quoted(*table))
    found = connection.execute(made, ()).fetchall()  # with parameters, so that a doubled % is one
    if len(found) != 1:
        had = ", ".join(str(dim) for (dim,) in sorted(found)) or "none"
        raise BadInput(
            f"{where}: column {spec.vector!r} has vectors of different dimensions ({had}), or none"
        )
    return int(found[0][0])


def _vector_index(connection: Connection, oid: int, column: str) -> tuple[str, str]:
    """Return the kind of the index of a vector column and the operator it serves; ("", "<=>") without one."""
    found = connection.execute(
        "SELECT am.amname, o.opcname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_am am ON am.oid = c.relam JOIN pg_opclass o ON o.oid = i.indclass[0]"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
        " WHERE i.indrelid = %s AND a.attname = %s AND am.amname IN ('hnsw', 'ivfflat')"
        " AND i.indisvalid AND i.indpred IS NULL ORDER BY am.amname",
        (oid, column),
    ).fetchall()
    for kind, operators in found:
        metric = operators.removesuffix("_ops").rpartition("_")[2]
        if metric in OPERATORS:
            return kind, OPERATORS[metric]
    return "", OPERATORS["cosine"]


def _word_index(connection: Connection, oid: int, spec: CorpusSettings) -> tuple[str, str]:
    """Return the expression of a GIN index of to_tsvector, as the server writes it, or an indexed tsvector
    column, or ""; and the configuration for questions.
    """
    language = configuration(connection, spec.language)
    found = connection.execute(
        "SELECT pg_get_indexdef(i.indexrelid, 1, true) FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam"
        " JOIN pg_opclass o ON o.oid = i.indclass[0] WHERE i.indrelid = %s"
        " AND am.amname = 'gin' AND o.opcname = 'tsvector_ops' AND i.indisvalid AND i.indpred IS NULL",
        (oid,),
    ).fetchall()
    for (expression,) in found:
        if expression.startswith("to_tsvector('") and "'::regconfig" in expression:
            return expression, expression.split("'")[1].rpartition(".")[2]
        if "(" not in expression:
            return expression, language
    return "", language


def _examined(name: str, settings: Settings) -> Examined:
    """Return the content of a table with the sorted ids of its passages."""
    spec, found = settings.corpora[name], look(name, settings)
    return _known.get((name, found.fingerprint), lambda: _examine(name, spec, found, settings))


def _examine(name: str, spec: CorpusSettings, found: Found, settings: Settings) -> Examined:
    began, server = time.perf_counter(), _server(spec)
    id, text, vector = map(quoted, (spec.id, spec.text, spec.vector))
    counting = compose(
        "SELECT count(*) FILTER (WHERE {id} IS NULL), count(*) FILTER (WHERE {text} IS NULL),"
        " count(*) FILTER (WHERE {vector} IS NULL),"
        " count(*) FILTER (WHERE octet_length({text}) > {most}),"
        " min(vector_dims({vector}::vector)), max(vector_dims({vector}::vector)),"
        " coalesce(bool_and(abs(vector_norm({vector}::vector) - 1) < 1e-3), true) FROM {table}",
        **{"id": id, "text": text, "vector": vector, "table": quoted(*found.table)},
        most=LONGEST,
    )
    listing = compose("SELECT id FROM {relation} AS p", relation=_shape(spec, found).relation)

    def read(connection: Connection) -> tuple[Any, list[str], int]:
        counts = connection.execute(counting, ()).fetchone()
        ids = sorted(unescaped(id) for (id,) in connection.execute(listing, ()).fetchall())
        size = connection.execute("SELECT pg_total_relation_size(%s::oid)", (found.oid,)).fetchone()[0]
        return counts, ids, int(size)

    (no_id, no_text, no_vector, long, least, most, unit), ids, size = server.read(read)
    where = f"[corpora.{name}]"
    if least is not None and (least != found.dim or most != found.dim):
        raise BadInput(f"{where}: column {spec.vector!r} holds vectors of {least} to {most} dimensions")
    twice = next((one for one, other in itertools.pairwise(ids) if one == other), None)
    if twice is not None:
        raise BadInput(f"{where}: id {twice!r} stands in several rows; column {spec.id!r} has to be unique")
    notes = [
        f"{count:,} rows without {what} are left out"
        for count, what in ((no_id, "an id"), (no_text, "a text"), (no_vector, "a vector"))
        if count
    ]
    if long:
        notes.append(f"{long:,} texts are long; of each the first {LONGEST:,} characters are read")
    if not found.index:
        notes.append(
            f"column {spec.vector} has no index, so every search compares all vectors; for a faster, "
            f"approximate one: CREATE INDEX ON ... USING hnsw ({spec.vector} vector_cosine_ops)"
        )
    if len(ids) > BM25_UP_TO:
        notes.append(f"more than {BM25_UP_TO:,} passages: BM25, and routes that use it, are not available")
    info = CorpusInfo(
        name=name,
        fingerprint=found.fingerprint,
        documents=len(ids),
        passages=len(ids),
        chunking=WHOLE,
        language=spec.language,
        embedder=spec.embedder or settings.embedder,
        embedder_identity=embedder_identity(spec.embedder or settings.embedder, settings),
        dim=found.dim,
        vector_index=found.index or "flat",
        recall=1.0,
        built_at=now(),
        build_ms={},
        bytes=size,
        reused=len(ids),
        notes=tuple(notes),
        place=Dsn(spec.dsn.get_secret_value()).plain(),
    )
    index = PgVectorIndex(server, _table(spec, found, ids, unit=bool(unit)), len(ids))
    recall = 1.0
    if found.index and ids:
        sample = np.random.default_rng(0).choice(len(ids), min(SAMPLE, len(ids)), replace=False)
        recall = index.recall(sample.tolist(), seconds=SAMPLE_S)
    took = round((time.perf_counter() - began) * 1000, 1)
    info = replace(info, recall=recall, build_ms={"look at the table": took})
    return Examined(info, tuple(ids), bool(unit))


def _rows(spec: CorpusSettings, found: Found, columns: Composable) -> Composable:
    """`columns` of the rows that are passages: those with an id, a text and a vector."""
    id, text, vector = map(quoted, (spec.id, spec.text, spec.vector))
    statement = (
        "(SELECT {columns} FROM {table} WHERE {id} IS NOT NULL AND {text} IS NOT NULL AND {v} IS NOT NULL)"
    )
    return compose(statement, columns=columns, table=quoted(*found.table), id=id, text=text, v=vector)


def _shape(spec: CorpusSettings, found: Found) -> Shape:
    """Return the SQL for reading passages from the table."""
    title = quoted(spec.title) if spec.title else compose("NULL::text")
    pairs: list[Composable] = []
    objects: list[Composable] = []
    for name in spec.metadata:
        if _is_json(found, name):
            part = "CASE jsonb_typeof({o}::jsonb) WHEN 'object' THEN {o}::jsonb ELSE '{{}}'::jsonb END"
            objects.append(compose(part, o=quoted(name)))
        else:
            pairs.append(compose("{name}::text, {column}", name=literal(name), column=quoted(name)))
    meta = [compose("jsonb_build_object({pairs})", pairs=_joined(", ", pairs)), *objects]
    columns = compose(
        "{id} AS own, {id}::text AS id, coalesce({title}, '') AS title, left({text}, {most}) AS text,"
        " 0 AS start, least(char_length({text}), {most}) AS stop, {meta} AS meta",
        **{"id": quoted(spec.id), "text": quoted(spec.text), "title": title, "meta": _joined(" || ", meta)},
        most=LONGEST,
    )
    return Shape(
        relation=_rows(spec, found, columns),
        select=compose("id, id, id, title, text, start, stop"),
        key=compose("id"),
        match=_match(spec, found),
        meta=compose("meta"),
        documents=None,
    )


def _joined(between: str, parts: Sequence[Composable]) -> Composable:
    from psycopg import sql

    return sql.SQL(between).join(parts)


def _table(spec: CorpusSettings, found: Found, ids: Sequence[str], *, unit: bool) -> PassageTable:
    """Return the SQL for searching the table."""
    words: Composable | None = None
    if found.words:
        words = compose(
            found.words.replace("%", "%%").replace("{", "{{").replace("}", "}}")
        )  # the server's own
    elif len(ids) <= WORDS_UP_TO:
        statement = "to_tsvector({language}::regconfig, left({text}, {most}))"
        words = compose(statement, language=found.language, text=quoted(spec.text), most=WORDS_OF)
    columns = [compose(f"{{c}} AS {name}", c=quoted(getattr(spec, of))) for of, name in OWN]
    columns += [compose("{words} AS words", words=words)] if words is not None else []
    named = ((quoted(name), quoted(f"meta_{at}")) for at, name in enumerate(spec.metadata))
    columns += [compose("{c} AS {name}", c=column, name=name) for column, name in named]

    def meta(name: str) -> tuple[Composable, bool] | None:
        for at, column in enumerate(spec.metadata):
            own = quoted(f"meta_{at}")
            if _is_json(found, column):
                return compose("({own}::jsonb ->> {name})", own=own, name=literal(name)), True
            if column == name:
                return own, False
        return None

    return PassageTable(
        relation=compose("{rows} AS passages", rows=_rows(spec, found, _joined(", ", columns))),
        key=compose("own::text"),
        match=_match(spec, found),
        vector=quoted("vector"),
        dim=found.dim,
        row_of=lambda keys: [place(ids, unescaped(key)) for key in keys],
        key_of=lambda rows: [escaped(ids[row]) for row in rows],
        operator=found.operator,
        type=found.types[spec.vector],
        unit=unit,
        index=found.index,
        meta=meta,
        fields=spec.metadata,
        words=quoted("words") if words is not None else None,
        language=found.language,
        wordless=(
            f"table {spec.table} has more than {WORDS_UP_TO:,} passages and no index of words: CREATE "
            f"INDEX ON {spec.table} USING gin (to_tsvector('{found.language}', {spec.text}))"
        ),
    )


def _is_json(found: Found, column: str) -> bool:
    return found.types[column] in ("json", "jsonb")


def _match(spec: CorpusSettings, found: Found) -> Composable:
    """Return the test whether an id is among a list, compared in its own type, so that its index applies."""
    return compose("own = ANY(%s::text[]::" + found.types[spec.id].replace("%", "%%") + "[])")
