"""The records of the indexes: their names, and the active index of each name."""

from __future__ import annotations

import json
import logging
import sqlite3
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from core.corpus import endings, manifest, table
from core.corpus.manifest import CorpusInfo
from core.corpus.served import dsn_of, passages_of
from core.corpus.source import Source, from_record, is_slug, slug
from core.domain.errors import BadInput, IndexDamaged, RouteScopeError, Unavailable
from core.domain.postgres import Dsn
from core.domain.settings import Settings

CURRENT = "current.json"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Current:
    """The active index of a name."""

    folder: Path
    source: Source  # where it came from
    stamp: str  # the source's state, over the files of the endings in `read`
    read: tuple[str, ...] = endings.FIRST
    content: str = ""  # a hash of the bytes of the source; empty if it was not made


def current_fingerprint(name: str, *, settings: Settings) -> str | None:
    """Return the fingerprint of the active index, or of a table's current state; None without one."""
    if table.is_table(name, settings):
        try:
            return table.fingerprint(name, settings)
        except RouteScopeError as error:
            _warn(f"{error}, so the corpus counts as not built")
            return None
    found = current(name, settings)
    return found.folder.name if found else None


def text_size(name: str, settings: Settings) -> tuple[int, int] | None:
    """Return the number of passages of an index and the bytes (UTF-8) of their texts and titles; None without
    one.

    Above `llm_context` passages the bytes are 0, as so many are never read whole.
    """
    if table.is_table(name, settings):
        try:
            passages = table.info(name, settings).passages
            return (passages, 0) if passages > settings.llm_context else table.text_size(name, settings)
        except RouteScopeError:
            return None  # `current_fingerprint` said why
    found = current(name, settings)
    try:
        return _text_size(found.folder, settings.llm_context, dsn(found, settings)) if found else None
    except (OSError, sqlite3.Error, IndexDamaged, Unavailable) as error:
        log.warning("%s cannot be read, so the corpus counts as not built: %s", name, error)
        return None


@lru_cache(256)
def _text_size(folder: Path, most: int, dsn: Dsn | None) -> tuple[int, int]:
    """As `text_size`; an index folder never changes, as it is named by its content."""
    info = manifest.read(folder)[0]
    if info.passages > most:
        return info.passages, 0
    store = passages_of(folder, info, dsn)
    try:
        return store.size()
    finally:
        store.close()


def dsn(found: Current, settings: Settings) -> Dsn | None:
    """Return the database address of an index' passages, with its known password; None if they are in
    files.
    """
    return dsn_of(found.source.name, found.source.place, settings) if found.source.place else None


def current(name: str, settings: Settings) -> Current | None:
    """Return the active index of `name`; None if there is no readable record."""
    try:
        return _current(name, settings)
    except IndexDamaged as error:
        _warn(f"{error}, so the corpus counts as not built")
        return None


@cache
def _warn(text: str) -> None:
    """Once: pages ask at each click."""
    log.warning("%s", text)


def unreadable(name: str, settings: Settings) -> str | None:
    """Explain why the record of the active index of `name` is unreadable; None if it is readable or
    missing.
    """
    try:
        _current(name, settings)
    except IndexDamaged as error:
        return str(error)
    return None


def _current(name: str, settings: Settings) -> Current | None:
    home = _home(name, settings)
    try:
        record = json.loads((home / CURRENT).read_text(encoding="utf-8"))
        folder = str(record["fingerprint"])
        if Path(folder).name != folder:
            raise ValueError(f"{folder!r} is not a folder name")
        # The folder names the corpus: a copy of another one's folder is a corpus of its own.
        origin = replace(from_record(record["source"]), name=home.name)
        read = tuple(map(str, record.get("read", endings.FIRST)))
        content = str(record.get("content", ""))
        return Current(home / folder, origin, str(record["stamp"]), read, content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, BadInput) as error:
        raise IndexDamaged(
            f"the record of corpus {name}, {home / CURRENT}, cannot be read: {error}"
        ) from error


def replaced(found: Current, settings: Settings) -> Current | None:
    """Return the active index if it has changed meanwhile, as a build deletes the index it replaces; else
    None.
    """
    now = current(found.source.name, settings)
    return now if now is not None and now.folder != found.folder else None


def recorded(found: Current) -> CorpusInfo:
    """Return the record of an active index after the quick check of its files. Raises IndexDamaged."""
    info, files = manifest.read(found.folder)
    manifest.check_sizes(found.folder, files)
    if info.name != found.source.name:
        raise IndexDamaged(f"the index in {found.folder} is of corpus {info.name!r}")
    return info


def names(settings: Settings) -> list[str]:
    """Return the names that have an index, sound or not, sorted; folders with invalid names are ignored."""
    found = (path.parent.name for path in (settings.home / "indexes").glob(f"*/{CURRENT}"))
    return sorted(name for name in found if is_slug(name))


def _home(name: str, settings: Settings) -> Path:
    """Return the folder of a corpus' indexes. Raises BadInput for an invalid name."""
    return settings.home / "indexes" / slug(name)
