"""`sessions`, `memory` and `store`: listing, deleting, copying and rescuing what is stored."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import MISSING, asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import click

from core.cli.commands import argument, command
from core.cli.common import emit, note
from core.cli.sessions import open_store
from core.cli.text import table
from core.domain.errors import BadInput
from core.domain.format import size
from core.evaluation.spec import option

UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@click.group("sessions")
def sessions_() -> None:
    """List, permanently delete and copy stored runs, or rescue them from a damaged file.

    `export` and `import` write and read single runs.
    """


@command("list", sessions_)
def list_(
    search: str = option("", "Only runs with these words.", "WORDS"),
    corpus: str | None = option(None, "Only runs on this corpus.", "NAME"),
    limit: int | None = option(None, "Maximum number of runs. Default: all.", least=1),
) -> None:
    """List the stored runs, newest first."""
    store = open_store()
    total = store.count(search, corpus=corpus)
    found = store.sessions(search, corpus=corpus, limit=limit or max(1, total))
    head = ("id", "asked (UTC)", "corpus", "status", "question")
    rows = [(r.id, r.created[:16].replace("T", " "), r.corpus, r.status, r.question) for r in found]
    emit(
        {"total": total, "sessions": [asdict(one) for one in found]},
        lambda: f"{table(head, rows)}\n{len(found):,} of {total:,} runs" if found else "No runs match",
    )


@command("purge", sessions_)
def purge_(
    older_than: str = option(MISSING, "Minimum age of the runs: 12h, 30d or 8w.", "AGE"),
    yes: bool = option(False, "Do not ask for confirmation."),
) -> None:
    """Permanently delete old runs and all data only they use. This cannot be undone.

    Unfinished runs, labels, playlists, evaluations and remembered conversations stay.
    """
    moment = datetime.now(UTC) - _age(older_than)
    store = open_store()
    count = store.deletion.count(moment)
    told = f"{count} runs asked before {moment:%Y-%m-%d %H:%M} UTC"
    if count and not yes:
        if not sys.stdin.isatty():
            raise BadInput(f"{told} would be permanently deleted; add --yes to do it")
        click.confirm(f"Delete {told} permanently?", abort=True, err=True)
    gone = store.deletion.before(moment)
    emit(
        {**asdict(gone), "before": moment.isoformat(timespec="seconds")},
        lambda: f"Permanently deleted {gone.runs} runs, and {gone.passages} passages that no other run uses",
    )


@command("restore", sessions_)
def restore_(
    kind: Literal["run", "playlist", "preset", "label-set", "evaluation"],
    name: str | None = argument("[NAME]"),
) -> None:
    """Bring back what was deleted: KIND with its NAME (of a run: its id), or list what can be restored.

    All but label sets are deleted for good after the undo time (the setting delete_undo_minutes).
    """
    from core.domain import settings as settings_module
    from core.evaluation import experiment_store
    from core.evaluation.labels import desk

    store, now = open_store(), settings_module.current()
    if kind == "evaluation":
        known = experiment_store.deleted(now)
    elif kind == "label-set":
        known = [one.name for one in desk.sets(store, deleted=True)]
    else:
        known = store.deleted(kind)
    if name is None:
        emit({kind: known}, lambda: "\n".join(known) or f"no deleted {kind}")
        return
    if kind == "evaluation":
        experiment_store.restore(now, name)
    elif kind == "label-set":
        desk.set_deleted(store, name, False)
    elif kind == "run":
        store.undelete(name)
    else:
        store.restore(kind, name)
    emit({"restored": name}, lambda: f"Restored {kind} {name}")


@command("vacuum", sessions_)
def vacuum_() -> None:
    """Return the space of deleted runs to the disk. The dashboard waits meanwhile."""
    from core.store.files import vacuum

    before, after = vacuum(_path())
    emit({"before": before, "after": after}, lambda: f"{_path()} shrank from {size(before)} to {size(after)}")


@command("backup", sessions_)
def backup_(file: Path) -> None:
    """Copy all sessions, labels and playlists to FILE, also while the dashboard runs.

    To restore the copy, stop the dashboard and replace the file that this command names by it.
    """
    from core.store.rescue import backup

    count = backup(_path(), file)
    emit(
        {"from": str(_path()), "path": str(file), "bytes": count},
        lambda: f"Copied {_path()} to {file} ({size(count)})",
    )


@command("recover", sessions_)
def recover_(file: Path | None = argument("[FILE]")) -> None:
    """Rescue the readable runs of a damaged session file into a new file in its place.

    The damaged file is saved under another name in the same folder. The default FILE is the one in the home
    folder. It must not be in use.
    """
    from core.store.rescue import recover

    path = file or _path()
    note(f"reading {path}")
    found = recover(path)
    document = {**asdict(found), "path": str(path), "aside": found.aside and str(found.aside)}
    kept = (
        f"{found.runs} runs, {found.judgements} judgements, {found.playlists} playlists, "
        f"{found.turns} remembered turns"
    )
    emit(
        document,
        lambda: (
            f"{path} is whole: {kept}. No changes made."
            if found.aside is None
            else f"Saved {kept}; {found.lost} runs were damaged. The damaged file is now {found.aside}"
        ),
    )


def _path() -> Path:
    """Return the session file of the home folder, without opening it, as it may be damaged. Raises BadInput
    if runs are in PostgreSQL.
    """
    from core.domain.settings import current

    if current().database is not None:
        raise BadInput(
            "runs are kept in PostgreSQL (ROUTESCOPE_DATABASE); use the server's own tools: see "
            "docs/server.md"
        )
    return current().home / "routescope.sqlite"


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,5})([hdw])", text.strip().lower())
    if found is None:
        raise BadInput(f"--older-than {text!r}; use a whole number of hours, days or weeks: 12h, 30d, 8w")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


@command("memory")
def memory_(
    session: str | None = option(None, "List the turns of this session.", "NAME"),
    forget: bool = option(False, "Permanently delete the session; its runs stay."),
    turns: Sequence[int] = option((), "Delete only this turn; repeatable.", "N", flags="--turn", least=None),
) -> None:
    """List the conversations that `ask --session NAME` remembers, or the turns of one."""
    if forget and session is None:
        raise BadInput("--forget needs --session NAME")
    if turns and not forget:
        raise BadInput("--turn N needs --forget")
    store = open_store()
    if session is None:
        rows = store.sessions_remembered()
        emit(
            {"sessions": [asdict(row) for row in rows]},
            lambda: (
                table(("session", "turns", "last (UTC)"), [(r.session, r.turns, r.last[:16]) for r in rows])
                if rows
                else "No conversation is remembered; use ask --session NAME"
            ),
        )
    elif forget:
        count = store.forget(session, turns or None)
        emit({"session": session, "forgotten": count}, lambda: f"Deleted {count} turns of session {session}")
    else:
        said = store.recall(session)
        emit(
            {"session": session, "turns": [asdict(turn) for turn in said]},
            lambda: (
                table(
                    ("turn", "who", "time (UTC)", "text"),
                    [(t.number, t.role, t.created[:16], t.text) for t in said],
                    right=(0,),
                )
                if said
                else f"Session {session} has no remembered turns"
            ),
        )


@click.group("store")
def store_() -> None:
    """Copy all that is stored (runs, labels, playlists, presets, memory) into another store."""


@command("copy", store_)
def copy_(
    source: str = argument("FROM"),
    target: str = argument("TO"),
    replace: bool = option(False, "Delete what TO holds first."),
) -> None:
    """Copy the store FROM into TO. Each is a file or the address of a PostgreSQL database.

    An address is postgresql://USER@HOST/NAME. Afterwards the rows of both are counted and their checksums
    compared. A copy that was interrupted goes on where it stopped. A store TO that has other data is refused.
    Stop the dashboard before.
    """
    from core.store.copying import copy
    from core.store.files import place_of

    one, two = place_of(source), place_of(target)

    def progress(name: str, done: int, of: int) -> None:
        if done == of or done % 10_000 == 0:
            note(f"{name}: {done:,} of {of:,}")

    found = copy(one, two, replace=replace, progress=progress)
    rows = [(c.table, f"{c.rows:,}", f"{c.new:,}", c.sha256[:16]) for c in found]
    emit(
        {"from": str(one), "to": str(two), "tables": [asdict(c) for c in found]},
        lambda: (
            f"{table(('table', 'rows', 'new', 'sha256'), rows)}\nCopied {one} to {two}; counts and checksums "
            "are equal"
        ),
    )
