"""Every run in one SQLite file: saved while it grows, found again, opened exactly as it was.

May import the rooms below: domain, backends, corpus, steps, routes. What runs routes writes here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from core.domain import people
from core.domain.errors import BadInput, Unavailable
from core.domain.once import Recent
from core.domain.people import Person
from core.domain.types import ASKED_BY, Query, Remembered, Run, Turn
from core.store import deeds, memory, named_rows, playlists, purge, run_annotations, runs
from core.store import search as searching
from core.store.codec import dumps
from core.store.deletion import Deletion, next_due
from core.store.files import Place, empty_log, open_to_write, reading
from core.store.labels import LabelStore
from core.store.memory import MemoryRow
from core.store.playlists import Playlist, PlaylistEntry
from core.store.postgres import Dsn
from core.store.rows import bind
from core.store.search import Choices, Filters, SessionRow, Traces
from core.store.writer import StoreWriter

if TYPE_CHECKING:
    from core.store.exchange import Packed

__all__ = ["Choices", "Filters", "MemoryRow", "Playlist", "PlaylistEntry", "SessionRow", "Store", "Traces"]

T = TypeVar("T")
MAX_LOADED_RUNS = 4  # runs that were loaded last and are kept as long as nobody writes them
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
        # Runs loaded last: when written, and what.
        self._kept: Recent[str, tuple[tuple[int, float], Run]] = Recent(MAX_LOADED_RUNS)
        self._writer = StoreWriter(self.path, lambda path: open_to_write(path), self._runs)
        self.deletion = Deletion(self.path, self._writer, undo_s)
        try:
            with closing(open_to_write(self.path)) as connection:
                waiting = next_due(connection)
        except (sqlite3.Error, OSError) as error:
            self._writer.warn(error)
        else:
            if waiting is not None:
                self.deletion.run()

    @property
    def warnings(self) -> list[str]:
        """Describe what cannot be stored now and why, one line each; empty once everything is stored."""
        return self._writer.warnings()

    def save(self, run: Run) -> None:
        """Queue the run to be written; may be called again and again while it grows. Never raises.

        Any text, and scores that are NaN or infinite, are kept as they are. A run that is not what `Run`
        promises is not stored, and `warnings` says why.
        """
        self._writer.put(run)

    def load(self, run_id: str) -> Run:
        """Return the run as last saved; "interrupted" if it was running in a process that has ended.

        Raises BadInput if there is no such run or it was deleted, Unavailable if the file cannot be read.
        """
        who = people.require("look")
        waiting = self._writer.waiting(run_id)
        if waiting is not None and (not who.account or waiting.settings.get(ASKED_BY) == who.account):
            return waiting  # of another's it is not known here whether it is shared
        with reading(self.path) as connection:
            number = run_annotations.number_of(connection, run_id, who=who)
            written = runs.written(connection, number)
            kept = self._kept.get(run_id)
            if kept is not None and written is not None and kept[0] == written:
                return kept[1]
            run = runs.read(connection, number)
        if written is not None:  # a page loads the same run again at each click
            self._kept[run_id] = (written, run)
        return run

    def sessions(
        self, search: str = "", *, before: str | None = None, limit: int = 50, **only: Unpack[Filters]
    ) -> list[SessionRow]:
        """List runs that are not deleted, newest first; the next page is the one `before` the last id of this
        page.

        `search`: words, each matched as a prefix of a word in question, answers, routes, tags or note.
        """
        with self._settled() as connection:
            return searching.sessions(connection, search=search, only=only, before=before, limit=limit)

    def session(self, run_id: str) -> SessionRow:
        """One run's line of the list; BadInput if there is no such run or it was deleted."""
        with self._settled() as connection:
            who = people.current()
            return searching.session(connection, run_annotations.number_of(connection, run_id, who=who))

    def count(self, search: str = "", **only: Unpack[Filters]) -> int:
        """Count the runs that `sessions` lists."""
        with self._settled() as connection:
            return searching.count(connection, search=search, only=only)

    def ids(self, search: str = "", **only: Unpack[Filters]) -> list[str]:
        """Return the ids of all runs that `sessions` lists, newest first."""
        with self._settled() as connection:
            return searching.ids(connection, search=search, only=only)

    def choices(self) -> Choices:
        """Return the filter values of the runs that are not deleted."""
        with self._settled() as connection:
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

    def traces(self, corpus: str | None = None, *, limit: int = searching.NEWEST) -> Traces:
        """Return the times of the newest runs on a corpus, or on any, as results with bare spans.

        Raises BadInput for a limit below 1, Unavailable if the file cannot be read.
        """
        if limit < 1:
            raise BadInput(f"limit={limit} must be 1 or more")
        with self._settled() as connection:
            return searching.read_traces(connection, corpus, limit)

    def _annotate(
        self, deed: str, run_id: str, change: Callable[[sqlite3.Connection, str, Any, Person], None], to: Any
    ) -> None:
        who = people.current()
        self.write(lambda connection: change(connection, run_id, to, who), deed=(deed, run_id))

    def tag(self, run_id: str, tags: Sequence[str]) -> None:
        """Replace the tags of a run."""
        cleaned = run_annotations.clean_tags(tags)
        self._annotate("run tagged", run_id, run_annotations.set_tags, cleaned)

    def note(self, run_id: str, text: str) -> None:
        """Replace the note on a run."""
        cleaned = run_annotations.clean_note(text)
        self._annotate("note written", run_id, run_annotations.set_note, cleaned)

    def share(self, run_id: str, shared: bool = True) -> None:
        """Show a run to everybody who may look, or again to who asked it alone."""
        deed = "run shared" if shared else "run made private"
        self._annotate(deed, run_id, run_annotations.set_private, not shared)

    def delete(self, run_id: str) -> None:
        """Take a run off the list; until its undo time has passed `undelete` brings it back. NotAllowed for
        another person's, but to owners.
        """
        self._annotate("run deleted", run_id, run_annotations.set_deleted, True)
        self._kept.pop(run_id, None)
        self._gone_later()

    def undelete(self, run_id: str) -> None:
        """Bring a deleted run back."""
        self._annotate("run restored", run_id, run_annotations.set_deleted, False)

    def remember(self, session: str, turns: Sequence[Turn], *, run: str = "") -> int:
        """Append turns to what is remembered of a session, on the disk on return; how many were new.

        Of a `run`, given by its id, each role is remembered once, however often this is called. BadInput for
        a name that is not allowed, a turn that is blank or too long, and a session that is full.
        """
        memory.check_session(session)
        memory.check_turns(turns, run)
        who = people.current()
        return self.write(lambda connection: memory.add(connection, session, turns, run, who))

    def recall(self, session: str) -> tuple[Remembered, ...]:
        """Return the turns stored of a session, oldest first; () for an unknown one."""
        memory.check_session(session)
        with reading(self.path) as connection:
            memory.check_owner(connection, session, people.require("look"))
            return memory.read(connection, session)

    def sessions_remembered(self) -> tuple[MemoryRow, ...]:
        """List the sessions with stored turns, the most recent first."""
        with reading(self.path) as connection:
            return memory.sessions(connection, people.require("look"))

    def forget(self, session: str, numbers: Collection[int] | None = None) -> int:
        """Delete what is remembered of a session, or only the turns of these numbers; how many turns.

        Their text is overwritten in the file. Runs stay, with the questions asked and the turns recalled in
        them. BadInput if there is nothing of that session, or a number is not among its turns.
        """
        memory.check_session(session)
        who = people.current()

        def work(connection: sqlite3.Connection) -> int:
            memory.check_owner(connection, session, who)
            return memory.remove(connection, session, numbers)

        count = self.write(work)
        try:
            empty_log(self.path)
        except sqlite3.Error as error:
            raise Unavailable(
                f"{count} turns are deleted, but {self.path}-wal may still hold their text: {error}"
            ) from error
        return count

    def playlists(self) -> tuple[Playlist, ...]:
        """Every playlist, by name."""
        return tuple(map(playlists.of_row, self.named("playlist")))

    def save_playlist(self, name: str, entries: Sequence[PlaylistEntry]) -> None:
        """Store a playlist under a name, replacing an earlier one; durable on return.

        Raises BadInput for an invalid name or entry, NotAllowed for another person's playlist.
        """
        cleaned, checked = named_rows.clean_name("playlist", name), playlists.clean_entries(entries)
        documents = dumps(list(map(playlists.to_document, checked)))
        self.save_named("playlist", {"name": cleaned, "entries": documents})

    def delete_playlist(self, name: str) -> None:
        """Delete a playlist; its runs stay. Raises BadInput if it does not exist."""
        self.discard("playlist", named_rows.clean_name("playlist", name))

    def named(self, kind: str) -> list[dict[str, Any]]:
        """Return the rows of every "playlist" or "preset", by name."""
        with reading(self.path) as connection:
            return named_rows.rows(connection, kind)

    def save_named(self, kind: str, row: dict[str, Any]) -> None:
        """Write the row of a "playlist" or "preset", replacing the one of its name. Raises NotAllowed for
        another person's.
        """
        people.require("edit")
        deed = f"{kind} saved", row["name"]
        if any(one["name"] == row["name"] for one in self.named(kind)):
            people.require_own(self.maker(*deed))
        self.write(lambda connection: named_rows.put(connection, kind, row), deed=deed)

    def discard(self, kind: str, name: str) -> None:
        """Delete a "playlist" or "preset"; until the undo time has passed `restore` brings it back.

        Raises BadInput if it does not exist, NotAllowed for another person's.
        """
        people.require_own(self.maker(f"{kind} saved", name))
        self.write(lambda db: named_rows.remove(db, kind, name), deed=(f"{kind} deleted", name))
        self._gone_later()

    def restore(self, kind: str, name: str) -> None:
        """Bring back the "playlist" or "preset" deleted last under that name. Raises as `discard`."""
        people.require_own(self.maker(f"{kind} saved", name))
        self.write(lambda db: named_rows.restore(db, kind, name), deed=(f"{kind} restored", name))

    def deleted(self, kind: str) -> list[str]:
        """Return the names (of a "run": ids) that can be brought back, the one deleted last first."""
        with reading(self.path) as connection:
            if kind != "run":
                return named_rows.deleted(connection, kind)
            return run_annotations.deleted(connection, people.require("look"))

    @contextmanager
    def _settled(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection to read, once the runs that are just being written are on the disk."""
        self._writer.settle(SETTLE_S)
        with reading(self.path) as connection:
            yield connection

    def _gone_later(self) -> None:
        if self.deletion.undo_s > 0:
            self.deletion.later(self.deletion.undo_s)
        else:
            self.deletion.run()

    def export_bundle(self, run_ids: Sequence[str]) -> bytes:
        """Return the runs with tags and notes as one file; importing and exporting it again returns the same
        bytes.

        Raises BadInput if a run is unknown or still running.
        """
        from core.store import exchange

        who = people.require("export")
        if not run_ids:
            raise BadInput("no run to export")
        self._writer.settle(SETTLE_S)
        packed = []
        with reading(self.path) as connection:
            for run_id in dict.fromkeys(run_ids):
                number = run_annotations.number_of(connection, run_id, who=who)
                row = searching.session(connection, number)
                packed.append(exchange.Packed(runs.read(connection, number), row.tags, row.note))
        people.record("runs exported", ", ".join(run_ids))
        return exchange.pack(packed)

    def import_bundle(self, data: bytes) -> list[str]:
        """Add the runs of a bundle, all or none; the ids of those that were not here already.

        A deleted run comes back. BadInput for a file that is no bundle or is damaged, and for a run that is
        here with other content.
        """
        from core.store import exchange

        packed = exchange.unpack(data)
        deed = "runs imported", ", ".join(one.run.id for one in packed)
        return self._add([(one.run, one) for one in packed], deed)

    def present(self, run_ids: Sequence[str]) -> set[str]:
        """Those of `run_ids` that are stored here and not deleted."""
        with reading(self.path) as connection:
            found = "SELECT 1 FROM runs WHERE id = ? AND deleted = 0"
            return {id for id in run_ids if connection.execute(found, (bind(id),)).fetchone()}

    def add_runs(self, added: Sequence[Run]) -> list[str]:
        """Add finished runs of elsewhere, all or none; the ids of those that were not here. A deleted one
        comes back as it was. On the disk on return.
        """
        return self._add([(run, None) for run in added])

    def _add(
        self, added: Sequence[tuple[Run, Packed | None]], deed: tuple[str, str] | None = None
    ) -> list[str]:
        """Add runs, those of a bundle with tags and notes; the ids of the ones that were not on the list."""
        from core.store import exchange

        who = people.require("edit")

        def work(connection: sqlite3.Connection) -> list[str]:
            new = []
            for run, packed in added:
                row = connection.execute(
                    "SELECT number, deleted FROM runs WHERE id = ?", (bind(run.id),)
                ).fetchone()
                if row is None:
                    purge.welcome(connection, run.id)
                    self._runs.write(connection, run, ours=False)
                    if packed is not None:
                        run_annotations.set_tags(connection, run.id, packed.tags)
                        run_annotations.set_note(connection, run.id, packed.note)
                elif packed is not None and not exchange.same(runs.read(connection, row["number"]), run):
                    raise BadInput(
                        f"run {short(run.id)} is already stored with different content; the bundle was not "
                        f"imported"
                    )
                elif row["deleted"]:
                    run_annotations.set_deleted(connection, run.id, False)
                else:
                    continue
                new.append(run.id)
            run_annotations.set_maker(connection, new, who.account)
            return new

        return self.write(work, deed=deed)

    def export_trec(self, run: Run) -> str:
        """Return the run's rankings as lines of a TREC run file; scores decrease with rank."""
        from core.store import exchange

        self._record_export(run)
        return exchange.trec(run)

    def export_jsonl(self, run: Run) -> str:
        """Return the run as JSON lines, one for each route's result."""
        from core.store import exchange

        self._record_export(run)
        return exchange.json_lines(run)

    def _record_export(self, run: Run) -> None:
        people.require("export")
        people.record("runs exported", run.id)

    def write(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        durable: bool = True,
        deed: tuple[str, str] | None = None,
    ) -> T:
        """Do `work` in a transaction of its own after all that was saved before, and give its result.

        On the disk on return (synchronous=FULL) if `durable`. `deed`, what is done and to what, is kept with
        it where who acts has an account. Raises Unavailable if the file cannot be written, NotAllowed for who
        has no role, and what `work` raises, which undoes it.
        """
        who = people.require("look")

        def both(connection: sqlite3.Connection) -> T:
            done = work(connection)
            if deed is not None:
                deeds.add(connection, who.account, *deed)
            return done

        return self._writer.do(both, durable=durable)

    @contextmanager
    def labels(self) -> Iterator[LabelStore]:
        """Yield the label sets as they are at one moment. Raises Unavailable if the store cannot be read."""
        with reading(self.path) as connection:
            yield LabelStore(connection)

    def change_labels(self, work: Callable[[LabelStore], T], *, deed: tuple[str, str] | None = None) -> T:
        """Do `work` on the label sets in a transaction of its own; see `write`."""
        return self.write(lambda connection: work(LabelStore(connection)), deed=deed)

    def asked(self, corpus: str, limit: int) -> list[Query]:
        """Return the questions of the newest `limit` runs on a corpus, each with its conversation once, the
        newest first.
        """
        with reading(self.path) as connection:
            return runs.asked(connection, corpus, limit)

    def record(self, who: str, deed: str, about: str) -> None:
        """Log that `who` did something. Raises Unavailable if it cannot be stored."""
        self._writer.do(lambda connection: deeds.add(connection, who, deed, about), durable=True)

    def done(self, limit: int = 200) -> list[deeds.Done]:
        """List what people with accounts did, the newest first."""
        people.require("look")
        with reading(self.path) as connection:
            return deeds.listed(connection, limit)

    def maker(self, deed: str, about: str) -> str:
        """Return the account of who did it first to `about`: who made it. "" without an account."""
        with reading(self.path) as connection:
            return deeds.first(connection, deed, about)

    def reserve(self, who: str, tokens: int, limit: int) -> tuple[str, int]:
        """Reserve model tokens of `who` for a call; see `deeds.reserve`."""
        return self._writer.do(lambda db: deeds.reserve(db, who, tokens, limit), durable=False)

    def settle(self, id: str, who: str, tokens: int) -> None:
        """Count what a call used instead of the reservation `id`."""
        self._writer.do(lambda db: deeds.settle(db, id, who, tokens), durable=False)

    def spend(self, who: str, tokens: int) -> None:
        """Add to the model tokens that `who` used today (UTC)."""
        day = deeds.today()
        self._writer.do(lambda connection: deeds.spend(connection, day, who, tokens), durable=False)

    def spent(self, who: str) -> int:
        """Return the model tokens that `who` used today (UTC)."""
        return self.spent_today().get(who, 0)

    def spent_today(self) -> dict[str, int]:
        """Return the model tokens that each person used today (UTC)."""
        with reading(self.path) as connection:
            return deeds.spent(connection, deeds.today())

    def flush(self) -> bool:
        """Wait until what was saved is on the disk; False, and a warning, if it cannot be written."""
        try:
            self._writer.do(runs.touch, durable=True)
        except Unavailable:
            return False
        return True

    def close(self) -> None:
        """Write what is queued and let go of the file. Also done when the process ends."""
        self.deletion.close()
        self._writer.close()
