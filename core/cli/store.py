"""`sessions`: listing, deleting, copying and rescuing stored runs."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from core.cli.common import emit, note, output_options
from core.cli.sessions import open_store
from core.cli.text import table
from core.domain.errors import BadInput
from core.domain.format import size

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("sessions")
def sessions_() -> None:
    """List, permanently delete and copy stored runs, or rescue them from a damaged file.

    `export` and `import` write and read single runs.
    """


@sessions_.command("list")
@click.option("--search", default="", metavar="WORDS", help="Only runs with these words.")
@click.option("--corpus", metavar="NAME", help="Only runs on this corpus.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of runs. Default: all.")
@output_options
def list_(search: str, corpus: str | None, limit: int | None, as_json: bool) -> int:
    """List the stored runs, newest first."""
    store = open_store()
    total = store.count(search, corpus=corpus)
    found = store.sessions(search, corpus=corpus, limit=limit or max(1, total))
    head = ("id", "asked (UTC)", "corpus", "status", "question")
    rows = [(r.id, r.created[:16].replace("T", " "), r.corpus, r.status, r.question) for r in found]
    emit(
        {"total": total, "sessions": [asdict(one) for one in found]},
        lambda: f"{table(head, rows)}\n{len(found):,} of {total:,} runs" if found else "No runs match",
        as_json=as_json,
    )
    return 0


@sessions_.command("purge")
@click.option("--older-than", required=True, metavar="AGE", help="Minimum age of the runs: 12h, 30d or 8w.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@output_options
def purge_(older_than: str, yes: bool, as_json: bool) -> int:
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
        as_json=as_json,
    )
    return 0


@sessions_.command("restore")
@click.argument("kind", type=click.Choice(["run", "playlist", "preset", "label-set", "evaluation"]))
@click.argument("name", required=False)
@output_options
def restore_(kind: str, name: str | None, as_json: bool) -> int:
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
        emit({kind: known}, lambda: "\n".join(known) or f"no deleted {kind}", as_json=as_json)
        return 0
    if kind == "evaluation":
        experiment_store.restore(now, name)
    elif kind == "label-set":
        desk.undelete(store, name)
    elif kind == "run":
        store.undelete(name)
    else:
        store.restore(kind, name)
    emit({"restored": name}, lambda: f"Restored {kind} {name}", as_json=as_json)
    return 0


@sessions_.command("vacuum")
@output_options
def vacuum_(as_json: bool) -> int:
    """Return the space of deleted runs to the disk. The dashboard waits meanwhile."""
    from core.store.files import vacuum

    before, after = vacuum(_path())
    emit(
        {"before": before, "after": after},
        lambda: f"{_path()} shrank from {size(before)} to {size(after)}",
        as_json=as_json,
    )
    return 0


@sessions_.command("backup")
@click.argument("file", type=_FILE, metavar="FILE")
@output_options
def backup_(file: Path, as_json: bool) -> int:
    """Copy all sessions, labels and playlists to FILE, also while the dashboard runs.

    To restore the copy, stop the dashboard and replace the file that this command names by it.
    """
    from core.store.rescue import backup

    count = backup(_path(), file)
    emit(
        {"from": str(_path()), "path": str(file), "bytes": count},
        lambda: f"Copied {_path()} to {file} ({size(count)})",
        as_json=as_json,
    )
    return 0


@sessions_.command("recover")
@click.argument("file", type=_FILE, metavar="[FILE]", required=False)
@output_options
def recover_(file: Path | None, as_json: bool) -> int:
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
        as_json=as_json,
    )
    return 0


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
