"""What people add to a run: tags, a note, and taking it off the list."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from reprlib import repr as short

from core.domain.errors import BadInput
from core.store.codec import dumps
from core.store.rows import bind
from core.store.search import indexed

MAX_TAG = 64  # characters
MAX_TAGS = 50
MAX_NOTE = 20_000  # characters


def set_tags(connection: sqlite3.Connection, run_id: str, tags: Sequence[str]) -> None:
    """Replace the tags of a run, also in the search index."""
    number = number_of(connection, run_id)
    connection.execute("UPDATE runs SET tags = ? WHERE number = ?", (bind(dumps(tags)), number))
    connection.execute(
        "UPDATE search SET tags = ? WHERE rowid = ?", (indexed(connection, " ".join(tags)), number)
    )


def set_note(connection: sqlite3.Connection, run_id: str, note: str) -> None:
    """Replace the note of a run, also in the search index."""
    number = number_of(connection, run_id)
    connection.execute("UPDATE runs SET note = ? WHERE number = ?", (bind(note), number))
    connection.execute("UPDATE search SET note = ? WHERE rowid = ?", (indexed(connection, note), number))


def set_deleted(connection: sqlite3.Connection, run_id: str, deleted: bool) -> None:
    """Take a run off the list, noting when, or bring it back."""
    number = number_of(connection, run_id, deleted=not deleted)
    when = time.time() if deleted else 0
    connection.execute("UPDATE runs SET deleted = ? WHERE number = ?", (when, number))


def number_of(connection: sqlite3.Connection, run_id: str, *, deleted: bool = False) -> int:
    """The row of a run that is on the list (or, if `deleted`, off it); BadInput if there is none."""
    row = connection.execute("SELECT number, deleted FROM runs WHERE id = ?", (bind(run_id),)).fetchone()
    if row is None:
        raise BadInput(f"there is no run {short(run_id)}; see the sessions list")
    if bool(row["deleted"]) != deleted:
        raise BadInput(
            f"run {short(run_id)} was deleted" if row["deleted"] else f"run {short(run_id)} is not deleted"
        )
    return int(row["number"])


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags trimmed, each once, in the order given; BadInput for an empty or overlong one."""
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise BadInput(f"tags are a list of words, not {short(tags)}")
    trimmed = list(dict.fromkeys(" ".join(tag.split()) for tag in tags))
    if len(trimmed) > MAX_TAGS:
        raise BadInput(f"{len(trimmed)} tags; at most {MAX_TAGS} are allowed")
    for tag in trimmed:
        if not 1 <= len(tag) <= MAX_TAG:
            raise BadInput(f"tag {short(tag)} must have 1 to {MAX_TAG} characters")
    return tuple(trimmed)


def clean_note(note: str) -> str:
    """The note; BadInput if it is not a text of allowed length."""
    if not isinstance(note, str) or len(note) > MAX_NOTE:
        raise BadInput(f"a note is a text of at most {MAX_NOTE:,} characters, not {short(note)}")
    return note
