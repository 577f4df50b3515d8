"""The writing thread by itself: what one transaction holds, how it reaches the disk, what fails alone."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from core.domain.errors import Unavailable
from core.domain.types import Query, Run
from core.store import writer as module
from core.store.writer import StoreWriter

RUN = Run("a", "2026", Query("q"), "c", "f", {}, ())


class Rows:
    """Writes a run's id and time; `held` is a run at which it waits, `wrong` one that it refuses."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()
        self.held, self.wrong = None, {}
        self.forgotten = 0

    def write(self, connection, run):
        connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (run.id, run.wall_ms))
        if run is self.held:
            self.begun.set()
            assert self.go.wait(60)
        if run.id in self.wrong:
            raise self.wrong[run.id]

    def forget(self):
        self.forgotten += 1


@pytest.fixture
def rows():
    return Rows()


@pytest.fixture
def said():
    """Every statement the writer's connections were given."""
    return []


@pytest.fixture
def writer(tmp_path, rows, said, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", (3600.0, 3600.0))  # only what is asked for wakes it

    def connect(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("CREATE TABLE IF NOT EXISTS kept (id TEXT PRIMARY KEY, ms REAL)")
        connection.set_trace_callback(said.append)
        return connection

    made = StoreWriter(tmp_path / "a.sqlite", connect, rows)
    yield made
    made.close()


def kept(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        return dict(connection.execute("SELECT id, ms FROM kept ORDER BY id"))


def put_in(id):
    return lambda connection: connection.execute("INSERT INTO kept VALUES (?, 0)", (id,)).lastrowid


def together(writer, orders, runs=()):
    """Have all of these done in one batch: they are queued while the thread is held up by another one."""
    began, go, asked = threading.Event(), threading.Event(), []

    def hold(_):
        began.set()
        assert go.wait(60)

    with ThreadPoolExecutor(len(orders) + 1) as pool:
        pool.submit(writer.do, hold, durable=False)
        assert began.wait(60)
        for run in runs:
            writer.put(run)
        for work, durable in orders:
            asked.append(pool.submit(writer.do, work, durable=durable))
            with writer._changed:  # each in its place
                assert writer._changed.wait_for(lambda: len(writer._orders) >= len(asked), 60)
        go.set()
    return [one.exception() or one.result() for one in asked]


@pytest.mark.parametrize(
    ("durable", "mode"),
    [((True, False), "FULL"), ((False, True), "FULL"), ((False, False), "NORMAL"), ((True, True), "FULL")],
)
def test_one_durable_write_takes_the_whole_batch_to_the_disk(writer, said, tmp_path, durable, mode):
    together(writer, [(put_in(f"x{nth}"), one) for nth, one in enumerate(durable)], [RUN])
    modes = [one for one in said if one.startswith("PRAGMA synchronous")]
    assert modes == ["PRAGMA synchronous = NORMAL", f"PRAGMA synchronous = {mode}"], "two batches"
    assert said.count("COMMIT") == 2
    assert kept(tmp_path) == {"a": 0.0, "x0": 0.0, "x1": 0.0}


def test_runs_alone_do_not_wait_for_the_disk_and_an_order_is_durable_unless_it_says_otherwise(writer, said):
    writer.put(RUN)
    writer.settle(60)
    writer.do(put_in("b"))
    modes = [one.rpartition(" ")[2] for one in said if one.startswith("PRAGMA")]
    assert modes == ["NORMAL", "FULL"]
    count = lambda connection: connection.execute("SELECT count(*) FROM kept").fetchone()[0]  # noqa: E731
    states = [replace(RUN, id=id, wall_ms=ms) for ms in (1.0, 2.0) for id in "xyz"]
    assert together(writer, [(count, False)], states) == [5], "an order comes after the runs before it"
    written = [one for one in said if one.startswith("INSERT OR REPLACE")][1:]
    assert written == [f"INSERT OR REPLACE INTO kept VALUES ('{id}', 2.0)" for id in "xyz"], (
        "the newest alone"
    )


def test_what_an_order_raises_undoes_its_own_changes_and_no_others(writer, rows, tmp_path):
    def half(connection):
        connection.execute("INSERT INTO kept VALUES ('half', 0)")
        raise KeyError("mine")

    first, error, twice, last = together(
        writer, [(put_in("b"), True), (half, True), (put_in("b"), True), (put_in("z"), True)], [RUN]
    )
    assert (first, last) == (2, 3)
    assert isinstance(error, KeyError)
    assert isinstance(twice, sqlite3.IntegrityError)
    assert kept(tmp_path) == {"a": 0.0, "b": 0.0, "z": 0.0}
    assert rows.forgotten == 0
    assert writer.warnings() == []


def test_a_run_that_is_refused_is_undone_told_and_hinders_no_other(writer, rows, tmp_path):
    rows.wrong = {"b": ValueError("no run"), "d": sqlite3.IntegrityError("twice")}
    together(writer, [], [replace(RUN, id=id) for id in "abcd"])
    writer.settle(60)
    assert kept(tmp_path) == {"a": 0.0, "c": 0.0}
    assert writer.warnings() == [
        "run 'b' is not stored: ValueError: no run",
        "run 'd' is not stored: IntegrityError: twice",
    ]
    assert rows.forgotten == 2, "what was known of them was undone with them"
    assert writer.waiting("b") is None
    rows.wrong = {}
    writer.put(replace(RUN, id="b"))
    writer.settle(60)
    assert kept(tmp_path) == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert len(writer.warnings()) == 1


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), OSError("gone")])
def test_an_error_of_the_file_undoes_the_batch_and_keeps_the_runs(writer, rows, tmp_path, error):
    rows.wrong = {"b": error}
    (told,) = together(writer, [(put_in("x"), True)], [RUN, replace(RUN, id="b")])
    assert isinstance(told, Unavailable)
    assert str(error) in str(told)
    assert kept(tmp_path) == {}
    assert (writer.waiting("a"), rows.forgotten) == (RUN, 1)
    (warning,) = writer.warnings()
    assert warning == str(told)
    rows.wrong = {}
    assert writer.do(put_in("x")) == 3
    assert kept(tmp_path) == {"a": 0.0, "b": 0.0, "x": 0.0}
    assert (writer.warnings(), writer.waiting("a")) == ([], None)


def test_an_order_that_meets_an_error_of_the_file_fails_all_of_its_batch(writer, tmp_path):
    def broken(_):
        raise sqlite3.OperationalError("disk I/O error")

    found = together(writer, [(put_in("x"), False), (broken, False), (put_in("y"), False)])
    assert [type(one) for one in found] == [Unavailable] * 3
    assert kept(tmp_path) == {}


def test_a_state_put_while_an_older_one_is_written_is_written_next(writer, rows, tmp_path):
    rows.held = RUN
    writer.put(RUN)
    assert rows.begun.wait(60)
    later = replace(RUN, wall_ms=7.0)
    writer.put(later)
    rows.go.set()
    writer.settle(60)
    assert writer.waiting("a") is None
    assert kept(tmp_path) == {"a": 7.0}


def test_runs_kept_in_memory_are_bounded_the_oldest_goes_and_the_loss_is_told(writer, rows, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_RUNS", 1)
    rows.wrong = {id: OSError("full") for id in "abc"}
    together(writer, [], [replace(RUN, id=id) for id in "abc"])
    writer.settle(60)
    assert [writer.waiting(id) is None for id in "abc"] == [True, True, False]
    assert writer.warnings()[1:] == ["2 runs could not be stored and are lost"]


def test_closed_it_has_written_all_or_says_what_not_and_a_later_write_begins_again(
    writer, rows, tmp_path, caplog
):
    rows.held = RUN
    writer.put(RUN)
    assert rows.begun.wait(60)
    writer.put(replace(RUN, id="b"))
    threading.Thread(target=rows.go.set).start()
    writer.close()
    assert writer._thread is None
    assert kept(tmp_path) == {"a": 0.0, "b": 0.0}
    assert writer.do(put_in("x")) == 3
    assert writer._thread.is_alive()
    rows.wrong = {"a": OSError("full")}
    writer.put(replace(RUN))
    writer.settle(60)
    writer.close()
    assert writer._thread is None
    assert "runs that are not stored: a; sessions cannot be stored in" in caplog.text


def test_one_trouble_is_logged_once_and_another_one_again(writer, rows, caplog):
    for error in ("full", "full", "gone"):
        rows.wrong = {"a": OSError(error)}
        writer.put(RUN)
        with pytest.raises(Unavailable, match=error):
            writer.do(put_in("x"))
    told = [one.getMessage().rsplit(" ", 1)[-1] for one in caplog.records]
    assert told == ["full", "gone"]


def test_a_failed_batch_is_tried_again_after_a_pause_that_grows_to_a_bound(writer, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "RETRY_S", (0.001, 0.004))
    pauses, tried = [], threading.Event()
    connect, wait_for = writer._connect, writer._changed.wait_for

    def refuse(path):
        if len(pauses) < 6:
            raise OSError("not there")
        tried.set()
        return connect(path)

    def waited(check, timeout=None):
        if threading.current_thread().name == "store-writer" and timeout is not None:
            pauses.append(timeout)
        return wait_for(check, timeout)

    monkeypatch.setattr(writer, "_connect", refuse)
    monkeypatch.setattr(writer._changed, "wait_for", waited)
    writer.put(RUN)
    assert tried.wait(60)
    writer.close()
    assert pauses[:6] == [0.001, 0.002, 0.004, 0.004, 0.004, 0.004]
    assert kept(tmp_path) == {"a": 0.0}


def test_a_file_that_was_taken_away_is_opened_anew_and_the_old_one_is_let_go(writer, rows, tmp_path):
    def own(connection):
        return connection

    first = writer.do(own)
    assert writer.do(own) is first
    (tmp_path / "a.sqlite").unlink()
    writer.put(RUN)
    second = writer.do(own)
    assert second is not first
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        first.execute("SELECT 1")
    assert rows.forgotten == 1
    assert kept(tmp_path) == {"a": 0.0}
