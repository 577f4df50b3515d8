"""The tables of a corpus: which database and which CSV files belong to it, and what they say as documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from core.backends.sql import Database, Table
from core.backends.sql.csv_tables import header, load
from core.backends.sql.linking import examples
from core.corpus.folder import WATCH
from core.corpus.types import Document, LoadReport
from core.domain.errors import BadInput, Unavailable
from core.domain.once import Once

if TYPE_CHECKING:
    from core.corpus.source import Source
    from core.domain.needs import Need
    from core.domain.settings import Settings

ENDINGS = (".sqlite", ".sqlite3", ".db")
QUESTIONS = "questions.jsonl"  # beside a database: labelled questions about it, not documents
BUILT_IN = {"support": Path(__file__).resolve().parents[2] / "data" / "support" / "support.sqlite"}
EXAMPLES = 5  # values of a column in a table's document


class Tables:
    """The opened tables of a process' corpora: read again when a file has changed. Safe in threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Once[tuple[str, Need], tuple[object, Database]] = Once()

    def get(self, corpus: str, need: Need) -> Database:
        """The database, or the CSV files as one, of a corpus; raises Unavailable with the reason."""
        files = files_for(need, corpus, self._settings)
        state = [(file, stat.st_size, stat.st_mtime_ns) for file in files for stat in [file.stat()]]
        _, opened = self._known.get(
            (corpus, need), lambda: (state, _open(corpus, need, files)), lambda known: known[0] == state
        )
        return opened


def _open(corpus: str, need: Need, files: list[Path]) -> Database:
    from core.domain.needs import Need

    try:
        if need is Need.CSV:
            return load(files, ", ".join(file.name for file in files[:5]))[0]
        return Database(files[0], files[0].name)
    except BadInput as error:
        raise Unavailable(f"the CSV files of corpus {corpus} cannot be read: {error}") from error


def missing(need: Need, corpus: str, settings: Settings) -> str | None:
    """Why a corpus has no tables for `need`, or None; reads names of files and headers only."""
    try:
        files_for(need, corpus, settings)
    except (Unavailable, BadInput) as error:
        return str(error)
    return None


def files_for(need: Need, corpus: str, settings: Settings) -> list[Path]:
    """The files that meet `need` for a corpus, at least one; raises Unavailable with the reason."""
    from core.corpus import catalogue
    from core.domain.needs import Need

    source = catalogue.source(corpus, settings=settings, known_only=True)
    if need is Need.CSV:
        if csvs := data_files(source.path) if source.path is not None else []:
            return csvs
        raise Unavailable(f"corpus {corpus} has no CSV files with tables: put them into its folder")
    found = _databases_of(source)
    if not found:
        raise Unavailable(
            f"corpus {corpus} has no database: put one file ending in {', '.join(ENDINGS)} into its folder"
        )
    if len(found) > 1:
        names = ", ".join(file.name for file in found[:5])
        raise Unavailable(f"corpus {corpus} has {len(found)} databases ({names}); leave one in its folder")
    return found


def _databases_of(source: Source) -> list[Path]:
    if source.name in BUILT_IN:
        return [BUILT_IN[source.name]] if BUILT_IN[source.name].is_file() else []
    return databases(source.path) if source.path is not None else []


def databases(path: Path) -> list[Path]:
    """The SQLite files at or below `path`, sorted."""
    return [file for file in _below(path, ENDINGS) if is_sqlite(file)]


def is_sqlite(file: Path) -> bool:
    """Whether it begins as SQLite files do: others end in .db too."""
    try:
        with file.open("rb") as opened:
            return opened.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def data_files(path: Path) -> list[Path]:
    """The CSV files at or below `path` with rows of data: a column of texts would make one a file of
    documents; a file without a header is none.
    """
    return [file for file in _below(path, (".csv",)) if is_data(file)]


def is_data(file: Path) -> bool:
    """Whether a CSV file is a table, and not one document a row; False where it cannot be read."""
    try:
        stat = file.stat()
        return _is_data(file, stat.st_size, stat.st_mtime_ns)
    except OSError:
        return False


@lru_cache(200_000)
def _is_data(file: Path, _size: int, _changed: int) -> bool:
    """Read once for each state of the file: pages ask at each click."""
    from core.corpus.rows import TEXT_COLUMNS

    try:
        return not set(header(file)) & set(TEXT_COLUMNS)
    except BadInput:
        return False


def _below(path: Path, endings: tuple[str, ...]) -> list[Path]:
    """Files by ending; hidden ones and links that lead out of `path` are left out."""
    if path.is_file():
        return [path] if path.suffix.lower() in endings else []
    return WATCH.listing(path).having(endings)


def documents(file: Path, name: str, report: LoadReport) -> Iterator[Document]:
    """One document for each table of a database or CSV file; what cannot be read goes to `report`."""
    try:
        if file.suffix.lower() == ".csv":
            database, notes = load([file], name)
            report.skipped += notes
        else:
            database = Database(file, name)
    except (BadInput, Unavailable) as error:
        report.skipped.append(f"{name}: {error}")
        return
    for table in database.tables:
        yield Document(f"{name}/{table.name}", table.name.replace("_", " "), described(database, table))


def described(database: Database, table: Table) -> str:
    """A table in words: its columns with types and some values, and what its keys point at."""
    lines = [f"Table {table.name} of {database.name}."]
    for column in table.columns:
        shown = examples(database, table, column.name, EXAMPLES)
        kind = f" ({column.type.lower()})" if column.type else ""
        lines.append(f"- {column.name}{kind}" + (f": {', '.join(shown)}" if shown else ""))
    lines += [f"{own} refers to {other} {column}".rstrip() + "." for own, other, column in table.keys]
    return "\n".join(lines)
