"""Playlists: named lists of questions in an order, each with the run to show for it or none yet."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from reprlib import repr as short
from typing import Any

from core.domain.errors import BadInput
from core.domain.types import Turn
from core.store.codec import dumps
from core.store.rows import bind, parsed, text
from core.store.run_annotations import MAX_TAG, clean_note

MAX_ENTRIES = 500  # of one playlist
MAX_PLAYLISTS = 1000
MAX_TEXT = 10_000  # characters of a question or a turn
MAX_NAMES = 200  # routes of an entry, turns before it


@dataclass(frozen=True, slots=True)
class PlaylistEntry:
    """One question of a playlist."""

    question: str
    corpus: str
    run: str | None = None  # id of the run that shows it, which may have been deleted; None if there is none
    history: tuple[Turn, ...] = ()
    routes: tuple[str, ...] = ()  # names; () lets the viewer choose
    note: str = ""


@dataclass(frozen=True, slots=True)
class Playlist:
    """Entries in the order they are shown in; `changed` is when it was saved last, ISO 8601, UTC."""

    name: str
    entries: tuple[PlaylistEntry, ...]
    changed: str


def clean_name(name: str) -> str:
    """Trim a playlist's name. Raises BadInput unless it has 1 to 64 characters."""
    trimmed = " ".join(name.split()) if isinstance(name, str) else ""
    if not 1 <= len(trimmed) <= MAX_TAG:
        raise BadInput(f"playlist {short(name)}: the name must have 1 to {MAX_TAG} characters")
    return trimmed


def clean_entries(entries: Sequence[PlaylistEntry]) -> tuple[PlaylistEntry, ...]:
    """Check the entries. Raises BadInput, which names the entry from 1, for an invalid or too long one."""
    if len(entries) > MAX_ENTRIES:
        raise BadInput(f"{len(entries)} entries; a playlist has at most {MAX_ENTRIES}")
    for number, entry in enumerate(entries, 1):
        try:
            _check(entry)
        except BadInput as error:
            raise BadInput(f"entry {number}: {error}") from None
    return tuple(entries)


def read(connection: sqlite3.Connection) -> tuple[Playlist, ...]:
    """Every playlist, by name."""
    rows = connection.execute("SELECT name, entries, changed FROM playlists")
    found = [
        Playlist(text(r["name"]), tuple(map(from_document, parsed(r["entries"]))), r["changed"]) for r in rows
    ]
    return tuple(sorted(found, key=lambda one: (one.name.casefold(), one.name)))


def put(connection: sqlite3.Connection, name: str, entries: Sequence[PlaylistEntry]) -> None:
    """Write a playlist, replacing the one of that name. Raises BadInput if there are too many."""
    (others,) = connection.execute("SELECT count(*) FROM playlists WHERE name <> ?", (bind(name),)).fetchone()
    if others >= MAX_PLAYLISTS:
        raise BadInput(f"there are {others} playlists, which is the limit; delete one first")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    connection.execute(
        "INSERT INTO playlists (name, entries, changed) VALUES (?, ?, ?) "
        "ON CONFLICT (name) DO UPDATE SET entries = excluded.entries, changed = excluded.changed",
        (bind(name), bind(dumps([to_document(entry) for entry in entries])), now),
    )


def to_document(entry: PlaylistEntry) -> dict[str, Any]:
    """Convert an entry to JSON values."""
    history = [[turn.role, turn.text] for turn in entry.history]
    return {**asdict(entry), "history": history, "routes": list(entry.routes)}


def from_document(document: Mapping[str, Any]) -> PlaylistEntry:
    """Convert JSON values to an entry. Raises KeyError, TypeError or ValueError if they are invalid."""
    plain = {name: document[name] for name in ("question", "corpus", "run", "note")}
    history = tuple(Turn(role, said) for role, said in document["history"])
    return PlaylistEntry(**plain, history=history, routes=tuple(document["routes"]))


def _check(entry: PlaylistEntry) -> None:
    if not isinstance(entry, PlaylistEntry):
        raise BadInput(f"{short(entry)} is not a playlist entry")
    texts = [entry.question, entry.corpus, *entry.routes, *(turn.text for turn in entry.history)]
    if not all(isinstance(one, str) for one in texts) or not isinstance(entry.run, str | None):
        raise BadInput("question, corpus, routes and turns are texts; the run is an id or None")
    if not entry.question.strip() or max(map(len, texts)) > MAX_TEXT:
        raise BadInput(f"the question must not be blank, and texts may have at most {MAX_TEXT:,} characters")
    if max(len(entry.routes), len(entry.history)) > MAX_NAMES:
        raise BadInput(f"at most {MAX_NAMES} routes and as many turns are allowed")
    if any(turn.role not in ("user", "assistant") for turn in entry.history):
        raise BadInput("the role of a turn is user or assistant")
    clean_note(entry.note)
