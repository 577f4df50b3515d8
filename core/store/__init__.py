"""Every run in one SQLite file: saved while it grows, found again, opened exactly as it was.

May import the rooms below: domain, backends, corpus, steps, routes. What runs routes writes here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, TypeVar, Unpack

from core.domain.errors import BadInput, Unavailable
from core.domain.types import Remembered, Run, Turn
from core.store import memory, playlists, purge, run_annotations, runs, traces
from core.store import search as searching
from core.store.deletion import Deletion
from core.store.files import Place, empty_log, open_to_write, reading
from core.store.memory import MemoryRow
from core.store.playlists import Entry, Playlist
from core.store.postgres import Dsn
from core.store.rows import bind
from core.store.search import Choices, Filters, SessionRow
from core.store.traces import Traces
from core.store.writer import Writer

if TYPE_CHECKING:
    from core.store.exchange import Packed

__all__ = ["Choices", "Entry", "Filters", "MemoryRow", "Playlist", "SessionRow", "Store", "Traces"]

T = TypeVar("T")
KEPT = 4  # runs that were loaded last and are kept as long as nobody writes them
SETTLE_S = 1.0  # how long a list of runs waits for those that are just being written
UNDO_S = 600.0  # how long a deleted run can be brought back


class Store:
    """Sessions in one file. Safe to call from any thread, and from many processes at once.

    Runs are written by a thread in the background; a failure to do so is a line in `warnings`. What people
    did (tags, notes, deletions, imports) is on the disk on return, or the call raises Unavailable.

    A deleted run can be brought back for `undo_s` seconds. Then it is deleted for good, by the process that
    took it off the list or by the next one that opens the file; `deletion` does that, and does it earlier.
    """

    def __init__(self, path: Place, undo_s: float = UNDO_S) -> None:
        """Open, make or bring up to date; BadInput if the file is not ours or newer than this program.

        A place that cannot be written is a warning: what is there can be read, and runs are kept in memory.
        """
        self.path: Place = path if isinstance(path, Dsn) else Path(path)
        self._runs = runs.RunWriter()
        self._kept: dict[str, tuple[tuple[int, float], Run]] = {}  # runs loaded last: when written, and what
        self._writer = Writer(self.path, lambda path: open_to_write(path), self._runs)
        self.deletion = Deletion(self.path, self._writer, undo_s)
        try:
            with closing(open_to_write(self.path)) as connection:
                waiting = purge.next_due(connection)
        except (sqlite3.Error, OSError) as error:
            self._writer.warn(error)
        else:
            if waiting is not None:
                self.deletion.run()

    @property
    def warnings(self) -> list[str]:
        """What is not stored now and why, a line each; empty again once it could be."""
        return self._writer.warnings()

    def save(self, run: Run) -> None:
        """Queue the run to be written; may be called again and again while it grows. Never raises.

        Any text, and scores that are NaN or infinite, are kept as they are. A run that is not what `Run`
        promises is not stored, and `warnings` says why.
        """
        self._writer.put(run)

    def load(self, run_id: str) -> Run:
        """The run as it was last saved; "interrupted" if it was running in a process that is gone.

        Raises BadInput if there is no such run or it was deleted, Unavailable if the file cannot be read.
        """
        waiting = self._writer.waiting(run_id)
        if waiting is not None:
            return waiting
        with reading(self.path) as connection:
            number = run_annotations.number_of(connection, run_id)
            written = runs.written(connection, number)
            kept = self._kept.get(run_id)
            if kept is not None and written is not None and kept[0] == written:
                return kept[1]
            run = runs.read(connection, number)
        if written is not None:  # a page loads the same run again at each click
            self._kept[run_id] = (written, run)
            while len(self._kept) > KEPT:
                self._kept.pop(next(iter(self._kept)), None)
        return run

    def sessions(
        self, search: str = "", *, before: str | None = None, limit: int = 50, **only: Unpack[Filters]
    ) -> list[SessionRow]:
        """Runs that are not deleted, newest first; the next page is the one `before` the last id of this.

        `search`: words, each found as the beginning of a word in question, answers, routes, tags or note.
        """
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            return searching.sessions(connection, search=search, only=only, before=before, limit=limit)

    def session(self, run_id: str) -> SessionRow:
        """One run's line of the list; BadInput if there is no such run or it was deleted."""
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            return searching.session(connection, run_annotations.number_of(connection, run_id))

    def count(self, search: str = "", **only: Unpack[Filters]) -> int:
        """How many runs `sessions` lists in all."""
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            return searching.count(connection, search=search, only=only)

    def ids(self, search: str = "", **only: Unpack[Filters]) -> list[str]:
        """The ids of all that `sessions` lists, newest first."""
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            return searching.ids(connection, search=search, only=only)

    def choices(self) -> Choices:
        """What the runs that are not deleted can be filtered by."""
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            return searching.choices(connection)

    def route_history(self, corpus: str) -> dict[str, float]:
        """Median milliseconds by route of its recent good results here on this corpus.

        A file that cannot be read gives none, and a warning.
        """
        try:
            with reading(self.path) as connection:
                return searching.route_history(connection, corpus)
        except Unavailable as error:
            self._writer.warn(error)
            return {}

    def traces(self, corpus: str | None = None, *, limit: int = traces.NEWEST) -> Traces:
        """The times of the newest runs on a corpus, or on any, as results with bare spans.

        Raises BadInput for a limit below 1, Unavailable if the file cannot be read.
        """
        if limit < 1:
            raise BadInput(f"limit={limit} must be 1 or more")
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            return traces.read(connection, corpus, limit)

    def tag(self, run_id: str, tags: Sequence[str]) -> None:
        """Give a run these tags in place of those it had."""
        cleaned = run_annotations.clean_tags(tags)
        self.write(lambda connection: run_annotations.set_tags(connection, run_id, cleaned))

    def note(self, run_id: str, text: str) -> None:
        """Write a note on a run in place of the one it had."""
        cleaned = run_annotations.clean_note(text)
        self.write(lambda connection: run_annotations.set_note(connection, run_id, cleaned))

    def delete(self, run_id: str) -> None:
        """Take a run off the list; until its undo time has passed `undelete` brings it back."""
        self.write(lambda connection: run_annotations.set_deleted(connection, run_id, True))
        self._kept.pop(run_id, None)
        if self.deletion.undo_s > 0:
            self.deletion.later(self.deletion.undo_s)
        else:
            self.deletion.run()

    def undelete(self, run_id: str) -> None:
        """Bring a deleted run back."""
        self.write(lambda connection: run_annotations.set_deleted(connection, run_id, False))

    def remember(self, session: str, turns: Sequence[Turn], *, run: str = "") -> int:
        """Append turns to what is remembered of a session, on the disk on return; how many were new.

        Of a `run`, given by its id, each role is remembered once, however often this is called. BadInput for
        a name that is not allowed, a turn that is blank or too long, and a session that is full.
        """
        memory.check_session(session)
        memory.check_turns(turns, run)
        return self.write(lambda connection: memory.add(connection, session, turns, run))

    def recall(self, session: str) -> tuple[Remembered, ...]:
        """What is remembered of a session, oldest first; nothing of one that is unknown."""
        memory.check_session(session)
        with reading(self.path) as connection:
            return memory.read(connection, session)

    def sessions_remembered(self) -> tuple[MemoryRow, ...]:
        """The sessions of which something is remembered, the one spoken in last first."""
        with reading(self.path) as connection:
            return memory.sessions(connection)

    def forget(self, session: str, numbers: Collection[int] | None = None) -> int:
        """Delete what is remembered of a session, or only the turns of these numbers; how many turns.

        Their text is overwritten in the file. Runs stay, with the questions asked and the turns recalled in
        them. BadInput if there is nothing of that session, or a number is not among its turns.
        """
        memory.check_session(session)
        count = self.write(lambda connection: memory.remove(connection, session, numbers))
        try:
            empty_log(self.path)
        except sqlite3.Error as error:
            raise Unavailable(
                f"{count} turns are deleted, but {self.path}-wal may still hold their text: {error}"
            ) from error
        return count

    def playlists(self) -> tuple[Playlist, ...]:
        """Every playlist, by name."""
        with reading(self.path) as connection:
            return playlists.read(connection)

    def save_playlist(self, name: str, entries: Sequence[Entry]) -> None:
        """Keep these entries under a name, in place of what it held; on the disk on return.

        BadInput for a name that is no tag, and for an entry without a question or with too much of anything.
        """
        cleaned, checked = playlists.clean_name(name), playlists.clean_entries(entries)
        self.write(lambda connection: playlists.put(connection, cleaned, checked))

    def delete_playlist(self, name: str) -> None:
        """Forget a playlist; its runs stay. BadInput if there is none of that name."""
        cleaned = playlists.clean_name(name)
        self.write(lambda connection: playlists.remove(connection, cleaned))

    def export_bundle(self, run_ids: Sequence[str]) -> bytes:
        """The runs with tags and notes as one file; importing it and exporting again gives the same bytes.

        BadInput if a run is unknown or still running.
        """
        from core.store import exchange

        if not run_ids:
            raise BadInput("no run to export")
        self._writer.settle(SETTLE_S)
        packed = []
        with reading(self.path) as connection:
            for run_id in dict.fromkeys(run_ids):
                number = run_annotations.number_of(connection, run_id)
                row = searching.session(connection, number)
                packed.append(exchange.Packed(runs.read(connection, number), row.tags, row.note))
        return exchange.pack(packed)

    def import_bundle(self, data: bytes) -> list[str]:
        """Add the runs of a bundle, all or none; the ids of those that were not here already.

        A deleted run comes back. BadInput for a file that is no bundle or is damaged, and for a run that is
        here with other content.
        """
        from core.store import exchange

        packed = exchange.unpack(data)
        return self.write(lambda connection: [one.run.id for one in packed if self._add(connection, one)])

    def present(self, run_ids: Sequence[str]) -> set[str]:
        """Those of `run_ids` that are stored here and not deleted."""
        with reading(self.path) as connection:
            found = "SELECT 1 FROM runs WHERE id = ? AND NOT deleted"
            return {id for id in run_ids if connection.execute(found, (bind(id),)).fetchone()}

    def add_runs(self, runs: Sequence[Run]) -> list[str]:
        """Add finished runs of elsewhere, all or none; the ids of those that were not here. A deleted one
        comes back as it was. On the disk on return.
        """

        def work(connection: sqlite3.Connection) -> list[str]:
            return [run.id for run in runs if self._add_run(connection, run)]

        return self.write(work)

    def export_trec(self, run: Run) -> str:
        """The run's rankings as lines of a TREC run file; scores decrease with rank."""
        from core.store import exchange

        return exchange.trec(run)

    def export_jsonl(self, run: Run) -> str:
        """The run as lines of JSON, one for each route's result."""
        from core.store import exchange

        return exchange.jsonl(run)

    def write(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Do `work` in a transaction of its own after all that was saved before, and give its result.

        On the disk on return (synchronous=FULL) if `durable`. Raises Unavailable if the file cannot be
        written, and what `work` raises, which undoes it.
        """
        return self._writer.do(work, durable=durable)

    def flush(self) -> bool:
        """Wait until what was saved is on the disk; False, and a warning, if it cannot be written."""
        try:
            self.write(runs.touch)
        except Unavailable:
            return False
        return True

    def close(self) -> None:
        """Write what is queued and let go of the file. Also done when the process ends."""
        self.deletion.close()
        self._writer.close()

    def _add_run(self, connection: sqlite3.Connection, run: Run) -> bool:
        row = connection.execute("SELECT deleted FROM runs WHERE id = ?", (bind(run.id),)).fetchone()
        if row is None:
            purge.welcome(connection, run.id)
            self._runs.write(connection, run, ours=False)
        elif row["deleted"]:
            run_annotations.set_deleted(connection, run.id, False)
        return row is None or bool(row["deleted"])

    def _add(self, connection: sqlite3.Connection, one: Packed) -> bool:
        from core.store import exchange

        row = connection.execute(
            "SELECT number, deleted FROM runs WHERE id = ?", (bind(one.run.id),)
        ).fetchone()
        if row is None:
            purge.welcome(connection, one.run.id)
            self._runs.write(connection, one.run, ours=False)
            run_annotations.set_tags(connection, one.run.id, one.tags)
            run_annotations.set_note(connection, one.run.id, one.note)
        elif not exchange.same(runs.read(connection, row["number"]), one.run):
            raise BadInput(
                f"run {short(one.run.id)} is already stored with different content; the bundle was not "
                f"imported"
            )
        elif row["deleted"]:
            run_annotations.set_deleted(connection, one.run.id, False)
        else:
            return False
        return True
