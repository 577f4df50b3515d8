"""Deleting runs for good: nothing of them is left in file, log and index, and nothing else goes."""

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.domain.errors import BadInput, Unavailable
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Turn
from core.evaluation.labels import desk
from core.store import Store, deletion, files
from core.store.labels import Pooled
from core.store.postgres import Dsn
from tests.postgres_server import rows_with
from tests.runs import make_run
from tests.stored import QUESTION

CANARY = "kanarienvogel"
SHARED = Passage("shared.md:0-9", "shared.md", "Shared", "Both runs found this passage.", 0, 9)


def run(id, *passages, text="What is in the box?", history=(), answer=None, created="2026-01-01", **more):
    """One of a route that found these passages."""
    hits = tuple(Hit(one, 1.0 / n) for n, one in enumerate(passages, 1))
    result = RouteResult("bm25", "BM25", "ok", 1.0, hits=hits, answer=answer)
    held = {one.id: one for one in passages}
    return Run(id, created, Query(text, history), "support", "f", {}, (result,), held, **more)


def telltale(id):
    """A run that has the canary wherever a run has text."""
    own = Passage(f"{CANARY}2.md:0-9", f"{CANARY}2.md", f"{CANARY}3", f"the {CANARY}4 sings " * 60, 0, 9)
    made = run(
        id,
        own,
        SHARED,
        text=f"Who is {CANARY}5? " + "word " * 900,
        answer=f"It is {CANARY}6.",
        history=(Turn("user", f"{CANARY}7?"), Turn("assistant", "Yes \ud83d.")),
    )
    return replace(made, settings={"session": f"{CANARY}8"})


def traces(path, canary=CANARY):
    """Where the canary still is: files that hold it, and words of the search index; on a server, tables that
    have a row with it.
    """
    if isinstance(path, Dsn):
        return rows_with(path, canary)
    found = [one.name for one in path.parent.glob(f"{path.name}*") if canary.encode() in one.read_bytes()]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, search, row)")
        words = connection.execute("SELECT term FROM temp.words WHERE instr(term, ?)", (canary,)).fetchall()
    return found + words


@pytest.fixture
def path(store_place):
    return store_place


@pytest.fixture
def opened(path):
    """Open the file, as often as asked; all are closed at the end."""
    stores = []

    def go(**given):
        stores.append(Store(path, **given))
        return stores[-1]

    yield go
    for store in stores:
        store.close()


def until(condition, timeout=20):
    """Wait for a state that another thread brings about."""
    waited = threading.Event()
    for _ in range(timeout * 100):
        if condition():
            return
        waited.wait(0.01)
    raise AssertionError("it did not come about")


def purged(store, id):
    """Whether a run is gone for good: no longer there to be brought back."""
    try:
        store.undelete(id)
    except BadInput as error:
        return "there is no run" in str(error)
    store.delete(id)
    return False


@pytest.mark.trust
def test_nothing_is_left_of_a_deleted_run_and_all_of_the_others(opened, path):
    store = opened(undo_s=0)
    kept = run("kept", SHARED, history=(Turn("assistant", "Yes \ud83d."),))
    for made in (telltale("gone"), make_run(), kept):
        store.save(made)
    store.tag("gone", [f"{CANARY}9"])
    store.note("gone", f"a note on {CANARY}10")
    store.note("kept", f"once {CANARY}11, ")
    store.note("kept", "nothing")
    assert traces(path)
    store.delete("gone")
    assert traces(path) == []
    assert [row.id for row in store.sessions()] == [make_run().id, "kept"]
    assert store.load("kept") == kept
    assert Store(path).load(make_run().id) == make_run()
    assert store.sessions(CANARY) == []
    assert [row.id for row in store.sessions("nothing")] == ["kept"]
    with pytest.raises(BadInput, match="there is no run"):
        store.load("gone")
    if not isinstance(path, Dsn):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_words_that_a_label_pool_has_stay(opened, path):
    store = opened(undo_s=0)
    pooled = Passage("p", "d", "Title", "The words that are judged.", 0, 9)
    store.save(run("gone", pooled, SHARED))
    desk.create(store, "Set", "support", [QUESTION])
    desk.add_to_pool(store, "Set", {QUESTION.id: [Pooled(pooled, (("bm25", 1),))]})
    store.delete("gone")
    assert desk.load(store, "Set").pool[QUESTION.id]["p"].passage == pooled
    assert traces(path, SHARED.text) == []


def test_a_deleted_run_can_be_brought_back_until_its_time_has_passed(opened, path):
    store = opened(undo_s=600)
    for id in ("a", "b", "c"):
        store.save(telltale(id))
    for id in ("a", "b"):
        store.delete(id)
    store.deletion.run()
    assert store.deletion.due().runs == 0
    store.undelete("b")
    assert store.load("b") == telltale("b")
    earlier = "UPDATE runs SET deleted = deleted - 601 WHERE id = 'a'"
    store.write(lambda connection: connection.execute(earlier))
    assert opened(undo_s=600).load("b") == telltale("b")  # also done by who opens the file
    assert purged(store, "a")
    for id in ("b", "c"):
        store.delete(id)
    assert opened(undo_s=600).deletion.due().runs == 0
    assert traces(path) != []
    assert opened(undo_s=0).count() == 0
    assert traces(path) == []


@pytest.mark.trust
def test_a_run_is_deleted_for_good_when_its_time_has_passed(opened, path):
    store = opened(undo_s=0.2)
    store.save(telltale("first"))
    store.save(telltale("second"))
    store.delete("first")
    store.delete("second")
    until(lambda: traces(path) == [])
    assert purged(store, "first")
    assert purged(store, "second")


def test_the_clock_set_back_does_not_keep_a_run(opened, monkeypatch, path):
    store = opened(undo_s=0.2)
    store.save(telltale("gone"))
    tomorrow = time.time() + 86400
    store.write(lambda connection: connection.execute("UPDATE runs SET deleted = ?", (tomorrow,)))
    store.deletion.run()
    assert not purged(store, "gone")  # which is to delete it now
    until(lambda: traces(path) == [])


def test_which_runs_are_gone_is_in_the_file(path):
    gone = run("gone", SHARED)
    with closing(Store(path, undo_s=0)) as store:
        store.save(gone)
        store.delete("gone")
        store.deletion.due()
        assert purged(store, "gone")
    with closing(Store(path)) as store:
        store.save(gone)
        assert store.flush()
        assert store.count() == 0


def test_a_run_under_way_is_deleted_when_it_has_ended(opened):
    store = opened(undo_s=0)
    growing = replace(run("growing", SHARED), status="running")
    store.save(growing)
    store.flush()
    store.delete("growing")
    assert not purged(store, "growing")
    store.save(replace(growing, status="done"))
    assert store.flush()
    assert store.count() == 0
    assert store.deletion.due().runs == 1
    assert purged(store, "growing")


def test_a_run_that_is_gone_does_not_come_back_but_from_a_file(opened):
    store, other = opened(undo_s=0), opened(undo_s=0)
    gone = run("gone", SHARED)
    store.save(gone)
    bundle = store.export_bundle(["gone"])
    other.delete("gone")
    store.save(gone)  # such as an answer that somebody waited for
    assert store.flush()
    assert store.count() == 0
    assert store.warnings == []
    assert store.import_bundle(bundle) == ["gone"]
    assert store.load("gone") == gone
    store.save(replace(gone, wall_ms=2.0))
    store.flush()
    assert other.load("gone").wall_ms == 2.0


def test_a_run_is_brought_back_right_after_it_went(opened):
    store = opened(undo_s=0)
    gone = run("gone", SHARED)
    store.save(gone)
    bundle = store.export_bundle(["gone"])
    store.delete("gone")
    assert store.import_bundle(bundle) == ["gone"]
    assert store.load("gone") == gone


def test_another_process_takes_no_passage_for_one_that_is_gone(opened):
    """The writer knows passages by their rows, and a row that was deleted is given to the next one."""
    store, other = opened(undo_s=0), opened(undo_s=0)
    new = Passage("new.md:0-9", "new.md", "New", "Another text.", 0, 9)
    store.save(run("first", SHARED))
    store.flush()
    other.delete("first")
    other.save(run("second", new))
    other.flush()
    store.save(run("third", SHARED))
    store.flush()
    assert other.load("third") == run("third", SHARED)
    assert store.load("second") == run("second", new)


def test_runs_asked_before_a_moment_go_at_once(opened, path):
    store = opened()
    for id, day in {"old": "2026-01-01", "new": "2026-03-01"}.items():
        store.save(replace(telltale(id), created=f"{day}T10:00:00.000+00:00"))
    store.save(replace(run("hidden", SHARED), created="2025-01-01"))
    store.flush()
    store.delete("hidden")
    moment = datetime(2026, 2, 1, tzinfo=UTC)
    assert store.deletion.count(moment) == 2
    gone = store.deletion.before(moment)
    assert (gone.runs, gone.passages) == (2, 0)  # the new one holds the passages
    assert [row.id for row in store.sessions()] == ["new"]
    assert store.deletion.count(moment) == 0
    gone = store.deletion.before(datetime(2026, 4, 1, tzinfo=UTC))
    assert (gone.runs, gone.passages, gone.texts) == (1, 2, 5)
    assert traces(path) == []


@pytest.mark.parametrize("store_place", ["file"], indirect=True)
def test_a_log_that_is_being_read_is_told_and_cut_later(opened, path, monkeypatch, caplog):
    monkeypatch.setattr(files, "LOG_S", 0.05)
    monkeypatch.setattr(deletion, "AGAIN_S", 0.05)
    store = opened(undo_s=600)
    store.save(telltale("gone"))
    store.flush()
    with files.reading(path) as connection:
        connection.execute("SELECT count(*) FROM runs").fetchone()
        with pytest.raises(Unavailable, match=r"1 runs are deleted, but .*-wal may still hold their text"):
            store.deletion.before(datetime(2030, 1, 1, tzinfo=UTC))
        assert traces(path)
        store.deletion.run()
        assert "not permanently deleted yet" in caplog.text
    until(lambda: traces(path) == [])


def test_a_place_that_cannot_be_written_keeps_deleted_runs_off_the_list(opened, path, monkeypatch):
    store = opened()
    store.save(run("gone"))
    store.delete("gone")
    store.close()

    def refuse(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(deletion.purge, "runs", refuse)
    again = opened(undo_s=0)
    assert again.count() == 0
    with pytest.raises(Unavailable, match="full"):
        again.deletion.due()


@pytest.mark.parametrize("store_place", ["file"], indirect=True)
def test_vacuum_gives_space_back(opened, path):
    store = opened()
    for n in range(40):
        store.save(run(f"r{n}", Passage(f"p{n}", f"p{n}", "Title", f"{n} " * 20_000, 0, 9)))
    store.flush()
    store.deletion.before(datetime(2030, 1, 1, tzinfo=UTC))
    store.save(run("kept", SHARED))
    store.flush()
    before, after = files.vacuum(path)
    assert after < before / 4
    assert path.stat().st_size == after
    assert store.load("kept") == run("kept", SHARED)
    store.save(run("later", SHARED))
    assert store.flush()
    path.unlink()
    path.mkdir()
    with pytest.raises(BadInput, match="folder"):
        files.vacuum(path)
