"""`sessions`, `memory` and `store`: listing, deleting, copying and rescuing what is stored."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import click

from core.cli.commands import argument, command
from core.cli.common import emit, note, table
from core.cli.imports import open_store
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.format import size
from core.evaluation import experiment_store
from core.evaluation.labels import desk
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.store.copying import copy
from core.store.files import place_of, vacuum
from core.store.rescue import backup, recover

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
    told = f"{table(head, rows)}\n{len(found):,} of {total:,} runs" if found else "No runs match"
    emit({"total": total, "sessions": [asdict(one) for one in found]}, told)


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
    deleted = f"Permanently deleted {gone.runs} runs, and {gone.passages} passages that no other run uses"
    emit({**asdict(gone), "before": moment.isoformat(timespec="seconds")}, deleted)


@command("restore", sessions_)
def restore_(
    kind: Literal["run", "playlist", "preset", "label-set", "evaluation"],
    name: str | None = argument("[NAME]"),
) -> None:
    """Bring back what was deleted: KIND with its NAME (of a run: its id), or list what can be restored.

    All but label sets are deleted for good after the undo time (the setting delete_undo_minutes).
    """
    store, now = open_store(), settings_module.current()
    if name is None:
        if kind == "evaluation":
            known = experiment_store.deleted(now)
        else:
            sets = kind == "label-set"
            known = [one.name for one in desk.sets(store, deleted=True)] if sets else store.deleted(kind)
        emit({kind: known}, "\n".join(known) or f"no deleted {kind}")
        return
    back: dict[str, Callable[[str], object]] = {
        "evaluation": partial(experiment_store.restore, now),
        "label-set": lambda name: desk.set_deleted(store, name, False),
        "run": store.undelete,
    }
    back.get(kind, partial(store.restore, kind))(name)
    emit({"restored": name}, f"Restored {kind} {name}")


@command("vacuum", sessions_)
def vacuum_() -> None:
    """Return the space of deleted runs to the disk. The dashboard waits meanwhile."""
    before, after = vacuum(_path())
    emit({"before": before, "after": after}, f"{_path()} shrank from {size(before)} to {size(after)}")


@command("backup", sessions_)
def backup_(file: Path) -> None:
    """Copy all sessions, labels and playlists to FILE, also while the dashboard runs.

    To restore the copy, stop the dashboard and replace the file that this command names by it.
    """
    path, count = str(_path()), backup(_path(), file)
    emit({"from": path, "path": str(file), "bytes": count}, f"Copied {path} to {file} ({size(count)})")


@command("recover", sessions_)
def recover_(file: Path | None = argument("[FILE]")) -> None:
    """Rescue the readable runs of a damaged session file into a new file in its place.

    The damaged file is saved under another name in the same folder. The default FILE is the one in the home
    folder. It must not be in use.
    """
    path = file or _path()
    note(f"reading {path}")
    found = recover(path)
    document = {**asdict(found), "path": str(path), "aside": found.aside and str(found.aside)}
    emit(document, say("commands.recovered", document))


def _path() -> Path:
    """Return the session file of the home folder, without opening it, as it may be damaged. Raises BadInput
    if runs are in PostgreSQL.
    """
    if settings_module.current().database is not None:
        raise BadInput("runs are in PostgreSQL (ROUTESCOPE_DATABASE); use its own tools: see docs/server.md")
    return settings_module.current().home / "routescope.sqlite"


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
        known = store.sessions_remembered()
        rows = table(("session", "turns", "last (UTC)"), [(r.session, r.turns, r.last[:16]) for r in known])
        none = "No conversation is remembered; use ask --session NAME"
        emit({"sessions": [asdict(row) for row in known]}, rows if known else none)
    elif forget:
        count = store.forget(session, turns or None)
        emit({"session": session, "forgotten": count}, f"Deleted {count} turns of session {session}")
    else:
        said = store.recall(session)
        turn_rows = [(t.number, t.role, t.created[:16], t.text) for t in said]
        rows = table(("turn", "who", "time (UTC)", "text"), turn_rows)
        none = f"Session {session} has no remembered turns"
        emit({"session": session, "turns": [asdict(turn) for turn in said]}, rows if said else none)


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
    one, two = place_of(source), place_of(target)

    def progress(name: str, done: int, of: int) -> None:
        if done == of or done % 10_000 == 0:
            note(f"{name}: {done:,} of {of:,}")

    found = copy(one, two, replace=replace, progress=progress)
    rows = [(c.table, f"{c.rows:,}", f"{c.new:,}", c.sha256[:16]) for c in found]
    equal = f"Copied {one} to {two}; counts and checksums are equal"
    document = {"from": str(one), "to": str(two), "tables": [asdict(c) for c in found]}
    emit(document, f"{table(('table', 'rows', 'new', 'sha256'), rows)}\n{equal}")
