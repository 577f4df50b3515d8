"""The tables of a corpus: which database and which CSV files belong to it, opened."""

from __future__ import annotations

from pathlib import Path

from core.backends.sql import Database
from core.backends.sql.csv_tables import load
from core.corpus import catalogue
from core.corpus.source import base_of
from core.corpus.table_files import ENDINGS, data_files, databases
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.domain.once import Once
from core.domain.settings import Settings

BUILT_IN = {"support": Path(__file__).resolve().parents[2] / "data" / "support" / "support.sqlite"}


class Tables:
    """The opened tables of a process' corpora: read again when a file has changed. Safe in threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Once[tuple[str, Need], tuple[object, Database]] = Once()

    def get(self, corpus: str, need: Need) -> Database:
        """Return the database, or the CSV files as one, of a corpus. Raises Unavailable with the reason."""
        files = files_for(need, corpus, self._settings)
        state = [(file, stat.st_size, stat.st_mtime_ns) for file in files for stat in [file.stat()]]

        def read() -> tuple[object, Database]:
            try:
                if need is Need.CSV:
                    return state, load(files, ", ".join(file.name for file in files[:5]))[0]
                return state, Database(files[0], files[0].name)
            except BadInput as error:
                raise Unavailable(f"the CSV files of corpus {corpus} cannot be read: {error}") from error

        return self._known.get((corpus, need), read, lambda known: known[0] == state)[1]


def missing(need: Need, corpus: str, settings: Settings) -> str | None:
    """Why a corpus has no tables for `need`, or None; reads names of files and headers only."""
    try:
        files_for(need, corpus, settings)
    except (Unavailable, BadInput) as error:
        return str(error)
    return None


def files_for(need: Need, corpus: str, settings: Settings) -> list[Path]:
    """Return the files that meet `need` for a corpus, at least one. Raises Unavailable with the reason."""
    source = catalogue.source(corpus, settings=settings, known_only=True)
    if need is Need.CSV:
        if csvs := data_files(source.path) if source.path is not None else []:
            return csvs
        raise Unavailable(f"corpus {corpus} has no CSV files with tables: put them into its folder")
    if (base := base_of(source.name)) in BUILT_IN:
        found = [file for file in (BUILT_IN[base],) if file.is_file()]
    else:
        found = databases(source.path) if source.path is not None else []
    if not found:
        how = f"put one file ending in {', '.join(ENDINGS)} into its folder"
        raise Unavailable(f"corpus {corpus} has no database: {how}")
    if len(found) > 1:
        names = ", ".join(file.name for file in found[:5])
        raise Unavailable(f"corpus {corpus} has {len(found)} databases ({names}); leave one in its folder")
    return found
