"""People's annotations of a run: tags, a note, and its deletion."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from reprlib import repr as short

from core.domain.errors import BadInput, NotAllowed
from core.domain.people import MACHINE, Person, acting, require, require_own
from core.store import steady_clock
from core.store.codec import dumps
from core.store.rows import bind, text
from core.store.search import indexed

MAX_TAG = 64  # characters
MAX_TAGS = 50
MAX_NOTE = 20_000  # characters


def set_tags(connection: sqlite3.Connection, run_id: str, tags: Sequence[str], who: Person = MACHINE) -> None:
    """Replace the tags of a run, also in the search index."""
    _write(connection, run_id, who, "tags", dumps(tags), " ".join(tags))


def set_note(connection: sqlite3.Connection, run_id: str, note: str, who: Person = MACHINE) -> None:
    """Replace the note of a run, also in the search index."""
    _write(connection, run_id, who, "note", note, note)


def set_deleted(connection: sqlite3.Connection, run_id: str, deleted: bool, who: Person = MACHINE) -> None:
    """Take a run off the list, noting when, or bring it back; another's by an owner alone."""
    number = number_of(connection, run_id, deleted=not deleted, who=who)
    with acting(who):
        require_own(maker_of(connection, number))
    when = steady_clock.now() if deleted else 0
    connection.execute("UPDATE runs SET deleted = ? WHERE number = ?", (when, number))


def set_private(connection: sqlite3.Connection, run_id: str, private: bool, who: Person) -> None:
    """Show a run to everybody, or to who asked it alone; NotAllowed to anybody else but the machine."""
    number = number_of(connection, run_id, who=who)
    maker = maker_of(connection, number)
    if who.account and maker != who.account:
        raise NotAllowed(f"run {short(run_id)} is {maker or 'nobody'}'s; only who asked it can share it")
    connection.execute("UPDATE runs SET private = ? WHERE number = ?", (int(private and maker != ""), number))


def deleted(connection: sqlite3.Connection, who: Person) -> list[str]:
    """Return the ids of deleted runs that `who` may see, the one deleted last first."""
    found = connection.execute("SELECT id, maker, private FROM runs WHERE deleted <> 0 ORDER BY deleted DESC")
    return [
        text(row["id"])
        for row in found.fetchall()
        if who.sees(text(row["maker"]), private=bool(row["private"]))
    ]


def maker_of(connection: sqlite3.Connection, number: int) -> str:
    """Return the account of the person who asked a run."""
    return str(text(connection.execute("SELECT maker FROM runs WHERE number = ?", (number,)).fetchone()[0]))


def set_maker(connection: sqlite3.Connection, run_ids: Sequence[str], who: str) -> None:
    """Note who brought these runs here; everybody sees them."""
    for run_id in run_ids:
        connection.execute("UPDATE runs SET maker = ? WHERE id = ?", (bind(who), bind(run_id)))


def _write(
    connection: sqlite3.Connection, run_id: str, who: Person, column: str, value: str, words: str
) -> None:
    """Write a run's tags or note if `who` may: their own runs', or any as an editor."""
    number = number_of(connection, run_id, who=who)
    if not who.account or maker_of(connection, number) != who.account:
        with acting(who):
            require("edit")
    connection.execute(f"UPDATE runs SET {column} = ? WHERE number = ?", (bind(value), number))
    found_by = indexed(connection, words)
    connection.execute(f"UPDATE search SET {column} = ? WHERE rowid = ?", (found_by, number))


def number_of(
    connection: sqlite3.Connection, run_id: str, *, deleted: bool = False, who: Person = MACHINE
) -> int:
    """Return the row of a listed run (or, if `deleted`, a deleted one) that `who` may see. Raises BadInput if
    there is none.
    """
    row = connection.execute(
        "SELECT number, deleted, maker, private FROM runs WHERE id = ?", (bind(run_id),)
    ).fetchone()
    if row is None or not who.sees(str(text(row["maker"])), private=bool(row["private"])):
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
    """Check a note. Raises BadInput if it is not a text of allowed length."""
    if not isinstance(note, str) or len(note) > MAX_NOTE:
        raise BadInput(f"a note is a text of at most {MAX_NOTE:,} characters, not {short(note)}")
    return note
