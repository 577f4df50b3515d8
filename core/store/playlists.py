"""Playlists: named lists of questions in an order, each with the run to show for it or none yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from reprlib import repr as short
from typing import Any

from core.domain.errors import BadInput
from core.domain.types import Turn
from core.store.rows import parsed
from core.store.run_annotations import clean_note

MAX_ENTRIES = 500  # of one playlist
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


def of_row(row: Mapping[str, Any]) -> Playlist:
    """Read a playlist as it is stored."""
    return Playlist(row["name"], tuple(map(from_document, parsed(row["entries"]))), row["changed"])


def to_document(entry: PlaylistEntry) -> dict[str, Any]:
    """Convert an entry to JSON values."""
    return {**asdict(entry), "history": [[turn.role, turn.text] for turn in entry.history]}


def from_document(document: Mapping[str, Any]) -> PlaylistEntry:
    """Convert JSON values to an entry. Raises KeyError, TypeError or ValueError if they are invalid."""
    history = tuple(Turn(role, said) for role, said in document["history"])
    return PlaylistEntry(**{**document, "history": history, "routes": tuple(document["routes"])})


def _check(entry: PlaylistEntry) -> None:
    texts = [entry.question, entry.corpus, *entry.routes, *(turn.text for turn in entry.history)]
    if not all(isinstance(one, str) for one in texts) or not isinstance(entry.run, str | None):
        raise BadInput(f"{short(entry)}: question, corpus, routes and turns are texts; the run an id or None")
    if not entry.question.strip() or max(map(len, texts)) > MAX_TEXT:
        raise BadInput(f"the question must not be blank, and texts may have at most {MAX_TEXT:,} characters")
    if max(len(entry.routes), len(entry.history)) > MAX_NAMES:
        raise BadInput(f"at most {MAX_NAMES} routes and as many turns are allowed")
    if any(turn.role not in ("user", "assistant") for turn in entry.history):
        raise BadInput("the role of a turn is user or assistant")
    clean_note(entry.note)
