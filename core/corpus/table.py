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
    COLUMNS,
    ServedCorpus,
    ServedPassages,
    compose,
    configuration,
    metadata,
    server_of,
)
from core.corpus.source import Known, Source, is_slug
from core.corpus.types import Document
from core.domain.errors import BadInput, RouteScopeError, Unavailable
from core.domain.needs import Need
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
OPERATORS = {"ip": "<#>", "cosine": "<=>", "l2": "<->"}


@dataclass(frozen=True, slots=True)
class Found:
    """The state of a table, enough to detect a change."""

    spec: CorpusSettings
    oid: int
    table: tuple[str, ...]
    types: Mapping[str, str]  # of the columns, by name
    dim: int
    index: str  # kind of the vectors' index
    operator: str  # the operator the index serves
    words: str  # an indexed expression for full text; "" without one
    language: str  # its configuration
    fingerprint: str

    def rows(self, columns: Composable) -> Composable:
        """Return SQL for `columns` of the rows that are passages: those with an id, a text and a vector."""
        id, text, vector = map(quoted, (self.spec.id, self.spec.text, self.spec.vector))
        return compose(
            "(SELECT {columns} FROM {table} WHERE {id} IS NOT NULL AND {text} IS NOT NULL"
            " AND {v} IS NOT NULL)",
            **{"columns": columns, "table": quoted(*self.table), "id": id, "text": text, "v": vector},
        )

    def is_json(self, column: str) -> bool:
        """Return True if a column holds objects."""
        return self.types[column] in ("json", "jsonb")

    def passages(self, ids: Sequence[str], *, unit: bool) -> PassageTable:
        """Return the SQL for reading and searching the table."""
        spec = self.spec
        plain = [name for name in spec.metadata if not self.is_json(name)]
        pairs = [compose("{name}::text, {column}", name=literal(one), column=quoted(one)) for one in plain]
        part = "CASE jsonb_typeof({o}::jsonb) WHEN 'object' THEN {o}::jsonb ELSE '{{}}'::jsonb END"
        objects = [compose(part, o=quoted(name)) for name in spec.metadata if name not in plain]
        columns = [
            compose(
                "{id} AS own, {id}::text AS id, {id}::text AS document, coalesce({title}, '') AS title,"
                " left({text}, {most}) AS text, 0 AS start, least(char_length({text}), {most}) AS stop,"
                " {vector} AS vector, {meta} AS meta",
                **{"id": quoted(spec.id), "text": quoted(spec.text), "vector": quoted(spec.vector)},
                title=quoted(spec.title) if spec.title else compose("NULL::text"),
                meta=_joined(
                    " || ", [compose("jsonb_build_object({pairs})", pairs=_joined(", ", pairs)), *objects]
                ),
                most=LONGEST,
            )
        ]
        for at, name in enumerate(spec.metadata):
            columns.append(compose("{c} AS {name}", c=quoted(name), name=quoted(f"meta_{at}")))
        wordless = not self.words and len(ids) > WORDS_UP_TO
        if self.words:  # the server's own
            columns.append(
                compose(self.words.replace("%", "%%").replace("{", "{{").replace("}", "}}") + " AS words")
            )
        elif not wordless:
            statement = "to_tsvector({language}::regconfig, left({text}, {most})) AS words"
            columns.append(compose(statement, language=self.language, text=quoted(spec.text), most=WORDS_OF))

        def meta(name: str) -> tuple[Composable, bool] | None:
            for at, column in enumerate(spec.metadata):
                own = quoted(f"meta_{at}")
                if self.is_json(column):
                    return compose("({own}::jsonb ->> {name})", own=own, name=literal(name)), True
                if column == name:
                    return own, False
            return None

        return PassageTable(
            relation=compose("{rows} AS p", rows=self.rows(_joined(", ", columns))),
            key=compose("own::text"),
            # an id is compared in its own type, so that its index applies
            match=compose("own = ANY(%s::text[]::" + self.types[spec.id].replace("%", "%%") + "[])"),
            vector=quoted("vector"),
            dim=self.dim,
            row_of=lambda keys: [place(ids, unescaped(key)) for key in keys],
            key_of=lambda rows: [escaped(ids[row]) for row in rows if 0 <= row < len(ids)],
            operator=self.operator,
            type=self.types[spec.vector],
            unit=unit,
            index=self.index,
            meta=meta,
            fields=spec.metadata,
            words=None if wordless else quoted("words"),
            language=self.language,
            wordless=(
                f"table {spec.table} has more than {WORDS_UP_TO:,} passages and no index of words: CREATE "
                f"INDEX ON {spec.table} USING gin (to_tsvector('{self.language}', {spec.text}))"
            ),
        )


def _joined(between: str, parts: Sequence[Composable]) -> Composable:
    from psycopg import sql

    return sql.SQL(between).join(parts)


@dataclass(frozen=True, slots=True)
class Examined:
    """The content of a table."""

    info: CorpusInfo
    ids: tuple[str, ...]  # sorted
    unit: bool  # True if all vectors have length 1


_looked: Once[tuple[str, str], tuple[float, Found | RouteScopeError]] = Once(64)
_examined: Once[tuple[str, str], Examined] = Once(16)  # by name and fingerprint


def names(settings: Settings) -> list[str]:
    """Return the corpora of the settings file that are tables, sorted."""
    return sorted(name for name, one in settings.corpora.items() if one.table and is_slug(name))


@cache
def warn(text: str) -> None:
    """Log a warning once: pages ask at each click."""
    log.warning("%s", text)


@dataclass(frozen=True, slots=True)
class Table:
    """A table in place by its name in the settings, before it is opened; it is ready if it can be read, which
    is checked every few seconds. See `catalogue.Held`.
    """

    name: str
    settings: Settings

    @property
    def spec(self) -> CorpusSettings:
        """Return the table [corpora.NAME] of the settings."""
        return self.settings.corpora[self.name]

    @property
    def dsn(self) -> Dsn:
        """Return the address of its database."""
        return Dsn(self.spec.dsn.get_secret_value())

    @property
    def server(self) -> PostgresServer:
        """Return the connections to its database."""
        return server_of(self.dsn)

    @property
    def source(self) -> Source:
        """Return the table as a source of a corpus."""
        title = f"table {self.spec.table} in {self.dsn}"
        return Source(self.name, "table", None, WHOLE, self.spec.language, title, place=self.dsn.plain())

    def describe(self) -> Known:
        """Describe the table."""
        origin = self.source
        base = Known(self.name, origin.title, origin.kind, "not built", "", origin.title, True)
        try:
            info = self.info()
        except (BadInput, Unavailable) as error:
            return replace(base, reason=str(error))
        return replace(base, state="ready", fingerprint=info.fingerprint, info=info)

    def look(self) -> Found:
        """Return the state of the table, at most `LOOK_AGAIN_S` old. Raises BadInput for one that cannot be a
        corpus, Unavailable if it cannot be read.
        """

        def looked() -> tuple[float, Found | RouteScopeError]:
            try:
                return time.monotonic(), self.server.read(lambda c: _look(c, self))
            except RouteScopeError as error:  # not asked again at each click either
                return time.monotonic(), error

        key = self.name, repr(self.spec) + self.dsn.conninfo() + self.settings.embedder
        _, found = _looked.get(key, looked, lambda seen: time.monotonic() - seen[0] < LOOK_AGAIN_S)
        if isinstance(found, RouteScopeError):
            raise found
        return found

    def examined(self) -> Examined:
        """Return the content of the table, which is read once per state."""
        found = self.look()
        return _examined.get((self.name, found.fingerprint), lambda: _examine(self, found))

    def info(self) -> CorpusInfo:
        """Return the record of the table."""
        return self.examined().info

    def fingerprint(self) -> str | None:
        """Return a value that changes with rows, columns or indexes, by the server's statistics, within
        seconds; None if the table cannot be read.
        """
        try:
            return self.look().fingerprint
        except RouteScopeError as error:
            warn(f"{error}, so the corpus counts as not built")
            return None

    def text_size(self) -> tuple[int, int] | None:
        """Return the number of passages and the bytes (UTF-8) of their texts and titles."""
        try:
            known = self.examined()
            if known.info.passages > self.settings.llm_context:
                return known.info.passages, 0
            table = self.look().passages(known.ids, unit=known.unit)
            return TablePassages(self.server, table, known.ids).size()
        except RouteScopeError:
            return None  # `fingerprint` said why

    def lacks(self) -> dict[Need, str]:
        """Explain that a large table has no BM25; one that cannot be read counts as not built."""
        try:
            lack = _no_bm25(self.name, self.info().passages)
        except RouteScopeError:
            lack = None
        return {Need.BM25: lack} if lack else {}

    def open(self) -> TableCorpus:
        """Open the table. Raises BadInput, Unavailable."""
        return TableCorpus(self)


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

    def __init__(self, table: Table) -> None:
        found, known = table.look(), table.examined()
        info, ids = known.info, known.ids
        passages = found.passages(ids, unit=known.unit)
        store = TablePassages(table.server, passages, ids)
        index = PgVectorIndex(table.server, passages, len(ids))
        words = None
        if _no_bm25(table.name, info.passages) is None:
            with tempfile.TemporaryDirectory(prefix="routescope-bm25-") as folder:  # mapped before its end
                sparse.write_index(store.texts(), Path(folder) / "bm25", analyzer(info.language))
                words = sparse.BM25Index(Path(folder) / "bm25", info.passages)
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

    def __init__(self, server: PostgresServer, table: PassageTable, ids: Sequence[str]) -> None:
        super().__init__(server, table)
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

    def rows_of(self, ids: Sequence[str]) -> list[int]:
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
            'SELECT id, title, stop FROM {relation} WHERE id COLLATE "C" > %s AND (strpos(lower(id),'
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
        statement = f"SELECT {COLUMNS}, meta FROM {{relation}} WHERE {{match}}"
        found = {line[0]: line[1:] for line in self._fetch(statement, (self._table.key_of(rows),))}
        for row, key in zip(rows, self._table.key_of(rows), strict=True):
            if key in found:
                *parts, meta = found[key]
                yield row, self._passage(parts), metadata(meta)


def place(ids: Sequence[str], id: str) -> int | None:
    """Return the row of an id, or None if it does not exist."""
    at = bisect_left(ids, id)
    return at if at < len(ids) and ids[at] == id else None


def _look(connection: Connection, table: Table) -> Found:
    """Return the state of a table. Raises BadInput for one that cannot be a corpus, Unavailable."""
    where, dsn, spec = f"[corpora.{table.name}]", table.dsn, table.spec
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        raise Unavailable(f"{where}: pgvector is not switched on in {dsn}: {VECTOR_EXTENSION}")
    oid, parts = _oid(connection, spec.table)
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
    _, kind, dim, _ = columns[spec.vector]
    if kind not in ("vector", "halfvec"):
        raise BadInput(
            f"{where}: column {spec.vector!r} is of type {types[spec.vector]}; a corpus needs vector or "
            f"halfvec of pgvector: ALTER TABLE ... ALTER COLUMN ... TYPE vector(N)"
        )
    if wrong := next((column for column in texts if types[column] not in TEXTS), None):
        raise BadInput(f"{where}: column {wrong!r} is of type {types[wrong]}; a corpus needs text")
    if dim <= 0:  # the column does not say it
        first = "SELECT vector_dims({v}::vector) FROM {t} WHERE {v} IS NOT NULL LIMIT 1"
        made = compose(first, v=quoted(spec.vector), t=quoted(*parts))
        (dim,) = connection.execute(made, ()).fetchone() or (0,)  # with parameters: a doubled % is one
    if not dim:
        raise BadInput(f"{where}: column {spec.vector!r} has no vectors")
    index, operator = _vector_index(connection, oid, spec.vector)
    words, language = _word_index(connection, oid, spec)
    named = spec.model_dump(mode="json", exclude={"dsn"})
    by = embedder_identity(spec.embedder or table.settings.embedder, table.settings)
    state = (types, dim, index, operator, words, language)
    # Rows ever inserted, changed and deleted, partitions included.
    changes = connection.execute(
        "SELECT coalesce(sum(n_tup_ins), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint,"
        " coalesce(sum(n_tup_del), 0)::bigint FROM pg_stat_all_tables WHERE relid = %s::oid OR relid IN"
        " (SELECT relid FROM pg_partition_tree(%s::oid::regclass))",
        (oid, oid),
    ).fetchone()
    facts = [dsn.plain(), named, oid, *state, by, list(changes)]
    return Found(spec, oid, parts, *state, hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16])


def _oid(connection: Connection, table: str) -> tuple[int | None, tuple[str, ...]]:
    """Find the table of a name, or of a schema and a name separated by a dot, and the parts of its name."""
    from psycopg import sql

    for parts in ((table,), tuple(table.split(".", 1))):
        said = sql.Identifier(*parts).as_string(connection)
        found = connection.execute("SELECT to_regclass(%s)::oid::bigint", (said,)).fetchone()
        if found[0] is not None:
            return int(found[0]), parts
    return None, ()


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


def _examine(table: Table, found: Found) -> Examined:
    began, spec, settings = time.perf_counter(), table.spec, table.settings
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
    listing = compose("SELECT id FROM {rows} AS p", rows=found.rows(compose("{id}::text AS id", id=id)))

    def read(connection: Connection) -> tuple[Any, list[str], int]:
        counts = connection.execute(counting, ()).fetchone()
        ids = sorted(unescaped(id) for (id,) in connection.execute(listing, ()).fetchall())
        size = connection.execute("SELECT pg_total_relation_size(%s::oid)", (found.oid,)).fetchone()[0]
        return counts, ids, int(size)

    (no_id, no_text, no_vector, long, least, most, unit), ids, size = table.server.read(read)
    where = f"[corpora.{table.name}]"
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
        name=table.name,
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
        place=table.dsn.plain(),
    )
    if found.index and ids:
        index = PgVectorIndex(table.server, found.passages(ids, unit=bool(unit)), len(ids))
        sample = np.random.default_rng(0).choice(len(ids), min(SAMPLE, len(ids)), replace=False)
        info = replace(info, recall=index.recall(sample.tolist(), seconds=SAMPLE_S))
    took = round((time.perf_counter() - began) * 1000, 1)
    return Examined(replace(info, build_ms={"look at the table": took}), tuple(ids), bool(unit))
