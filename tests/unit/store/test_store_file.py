"""The store's file: migrations, many writers, dead ones, full disks, and how long things take."""

import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import core.store
from core.domain import system
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Turn
from core.evaluation.labels import desk
from core.store import Store, files, migrations, presets, process_liveness, runs
from tests.runs import make_run
from tests.stored import HER, JUDGED, PLAYLIST, POOLED, PRESET, QUESTION, REMEMBERED, fill, sample_runs

pytestmark = pytest.mark.usefixtures("stores_made_anew")

ROOT = Path(__file__).resolve().parents[3]


def asked(id):
    """A small run."""
    return Run(id, "2026-01-01", Query("q"), "support", "f", {}, (RouteResult("bm25", "BM25", "ok", 1.0),))


def ids(rows):
    return [row.id for row in rows]


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "sessions.sqlite")
    yield store
    store.close()


# --- the file


def test_one_of_each_kind_comes_back_when_the_store_is_opened_again(store_place):
    fill(store_place)
    with closing(Store(store_place)) as store:
        assert store.warnings == []
        usual, odd, left = sample_runs()
        assert store.load("usual") == usual
        assert store.load("hostile") == odd
        assert store.load("left") == replace(left, status="interrupted")
        assert store.session("usual").tags == ("demo", "customer A")
        assert [turn.text for turn in store.recall("demo")] == REMEMBERED
        assert store.remember("demo", [Turn("user", "And later?")]) == 1
        assert store.recall("demo")[-1].number == 4
        assert [(one.name, one.entries) for one in store.playlists()] == [("Customer A", PLAYLIST)]
        hers = [(row.id, row.maker, row.private) for row in store.sessions() if row.maker]
        assert hers == [("hers", HER, True)]
        assert (HER, "settings", "llm") in [(one.who, one.deed, one.about) for one in store.done()]
        assert [one.name for one in desk.sets(store)] == ["Release 1"]
        assert [one.name for one in desk.sets(store, deleted=True)] == ["Gone"]
        labels = desk.load(store, "Release 1")
        assert (labels.set.guidelines, labels.set.relevant_from) == ("Be strict.", 1)
        assert (labels.questions, labels.judgements) == ((QUESTION,), JUDGED)
        assert labels.pool == {QUESTION.id: {POOLED.passage.id: POOLED}}
        assert [replace(one, changed="") for one in presets.every(store)] == [PRESET]


def test_a_later_step_is_applied_once_or_not_at_all(tmp_path):
    path = tmp_path / "a.sqlite"
    fill(path)
    reviews = ("CREATE TABLE reviews (run INTEGER NOT NULL)", "ALTER TABLE runs ADD COLUMN grade INTEGER")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        before = list(connection.iterdump())
        with pytest.raises(sqlite3.OperationalError, match="syntax"):
            migrations.migrate(connection, (*migrations.STEPS, (*reviews, "half way")))
        assert list(connection.iterdump()) == before
        for _ in range(2):
            migrations.migrate(connection, (*migrations.STEPS, reviews))
        assert connection.execute("SELECT count(*) FROM reviews").fetchone() == (0,)
        assert connection.execute("SELECT count(*), count(grade) FROM runs").fetchone() == (4, 0)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    with pytest.raises(BadInput, match="newer RouteScope"):
        Store(path)


def test_a_file_from_before_the_first_release_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (number INTEGER PRIMARY KEY, knobs TEXT)")
        connection.execute(f"PRAGMA application_id = {migrations.UNRELEASED}")
        connection.execute("PRAGMA user_version = 8")
    before = path.read_bytes()
    with pytest.raises(BadInput, match="or delete it"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["text", "other", "folder", "garbage"])
def test_a_file_that_is_not_ours_is_refused_and_left_alone(tmp_path, kind):
    path = tmp_path / "thing.sqlite"
    if kind == "folder":
        path.mkdir()
    elif kind == "other":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (a)")
    else:
        path.write_bytes(b"my notes\n" * 500 if kind == "text" else b"SQLite format 3\x00" + b"\xff" * 5000)
    before = None if kind == "folder" else path.read_bytes()
    with pytest.raises(BadInput, match=r"thing\.sqlite"):
        Store(path)
    assert before is None or path.read_bytes() == before


# --- many writers, dead writers


WRITE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from core.store import Store
from tests.runs import make_run

name = sys.argv[2]
run = make_run(size=5)

def work(thread):
    store = Store(Path(sys.argv[1]))
    for n in range(5):
        for seen in (2, 5):
            store.save(replace(run, id=f"{name}-{thread}-{n}", results=run.results[:seen]))
    store.tag(f"{name}-{thread}-4", [name])
    assert store.flush(), store.warnings

with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
"""


@pytest.mark.process
def test_many_threads_of_many_processes_lose_nothing(tmp_path):
    """All open a file that is not there yet."""
    path = tmp_path / "sessions.sqlite"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path), f"p{n}"], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for n in range(2)
    ]
    for process in writers:
        assert (process.communicate()[1], process.returncode) == ("", 0)
    store = Store(path)
    expected = {f"p{p}-{t}-{n}" for p in range(2) for t in range(4) for n in range(5)}
    assert set(ids(store.sessions(limit=200))) == expected
    assert all(store.load(id).results == make_run(size=5).results[:5] for id in sorted(expected)[::7])
    assert [store.session(f"p{p}-1-4").tags for p in range(2)] == [("p0",), ("p1",)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
from core.store import Store
from tests.runs import make_run

store = Store(Path(sys.argv[1]))
run = make_run()
for n in range(10_000):
    store.save(replace(run, id=f"r{n}", status="running", results=run.results[:3]))
    store.flush()
    print("running", f"r{n}", flush=True)
    store.save(replace(run, id=f"r{n}"))
    store.flush()
    print("done", f"r{n}", flush=True)
"""


@pytest.mark.process
def test_a_killed_process_loses_nothing_that_was_flushed(tmp_path):
    path = tmp_path / "sessions.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    said = [process.stdout.readline().split() for _ in range(15)]
    process.send_signal(signal.SIGKILL)
    said += [line.split() for line in process.stdout.read().splitlines() if line.count(" ")]
    process.wait()
    store = Store(path)
    run = make_run()
    *_, (state, last) = said
    for _, id in said:
        loaded = store.load(id)
        if loaded.status == "done":
            assert loaded == replace(run, id=id)
        else:
            assert id == last
            assert state == "running"
            assert loaded == replace(run, id=id, status="interrupted", results=run.results[:3])
            assert store.session(id).status == "interrupted"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.process
def test_a_process_that_ends_writes_what_is_queued(tmp_path):
    code = (
        "import sys; from pathlib import Path; from core.store import Store; from tests.runs import make_run;"
        "Store(Path(sys.argv[1])).save(make_run())"
    )
    path = tmp_path / "sessions.sqlite"
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, check=True)
    assert Store(path).load(make_run().id) == make_run()


def test_a_running_run_is_interrupted_when_its_owner_is_gone(store):
    run = replace(make_run(), status="running")
    store.save(run)
    store.flush()
    assert store.load(run.id).status == "running"
    store.write(lambda connection: connection.execute("UPDATE runs SET born = born - 60"))
    assert store.load(run.id) == replace(run, status="interrupted")
    assert store.sessions()[0].status == "interrupted"


def test_a_process_is_known_by_its_start_and_one_elsewhere_by_what_it_says():
    me, now = process_liveness.me(), time.time()
    alive = process_liveness.alive
    assert alive(me.host, me.pid, me.born, 0.0, me.boot)
    assert not alive(me.host, me.pid, me.born - 60, now, me.boot)  # another process of the same number
    assert not alive(me.host, 2**22 + 1, me.born, now, me.boot)
    assert not alive(me.host, me.pid, me.born, now, "another start of this machine")
    assert alive("elsewhere", 1, 0.0, now)
    assert not alive("elsewhere", 1, 0.0, now - process_liveness.SILENT_S - 1)


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_run_under_way_outlives_a_change_of_the_clock(store, monkeypatch, seconds):
    """The kernel tells start times in ticks since it began, and psutil adds when that was by the clock."""
    run = replace(make_run(), status="running")
    store.save(run)
    store.flush()
    began, now = psutil.Process.create_time, time.time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: began(self) + seconds)
    monkeypatch.setattr(time, "time", lambda: now() + seconds)
    assert store.load(run.id).status == "running"
    assert [row.status for row in store.sessions()] == ["running"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere times are by the clock")
def test_a_process_that_has_ended_is_gone_before_its_parent_looks():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    me = process_liveness.me()
    born = system.since_boot(child.pid)
    assert process_liveness.alive(me.host, child.pid, born, 0.0, me.boot)
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is not waited for yet
    assert not process_liveness.alive(me.host, child.pid, born, 0.0, me.boot)
    child.wait()
    assert not process_liveness.alive(me.host, child.pid, born, 0.0, me.boot)


def test_where_linux_is_not_start_times_are_by_the_clock(tmp_path, monkeypatch):
    monkeypatch.setattr(system, "PROC", tmp_path / "nothing")
    for known in (system.boot_id, process_liveness._owner):
        known.cache_clear()
    try:
        me = process_liveness.me()
        assert (me.boot, me.born) == (None, pytest.approx(psutil.Process().create_time()))
        assert process_liveness.alive(me.host, me.pid, me.born, 0.0, me.boot)
        assert not process_liveness.alive(me.host, me.pid, me.born - 60, 0.0, me.boot)
        assert not process_liveness.alive(me.host, 2**22 + 1, me.born, 0.0, me.boot)
    finally:
        for known in (system.boot_id, process_liveness._owner):
            known.cache_clear()


# --- a place that cannot be written


def full(path):
    """The real thing: SQLite refuses to grow the file, as it does on a full disk."""
    connection = files.open_to_write(path)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    return connection


def read_only(path):
    connection = files.open_to_write(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


@pytest.mark.trust
@pytest.mark.parametrize(("broken", "reason"), [(full, "full"), (read_only, "readonly")])
def test_a_file_that_cannot_grow_is_a_warning_and_loses_nothing(store, monkeypatch, broken, reason):
    store.save(asked("before"))
    store.close()
    monkeypatch.setattr(core.store, "open_to_write", broken)
    run = make_run()
    for seen in (3, 8):
        store.save(replace(run, results=run.results[:seen]))
        assert not store.flush()
    (warning,) = store.warnings
    assert reason in warning
    assert "\n" not in warning
    assert store.load(run.id) == run  # from memory
    assert store.load("before") == asked("before")
    assert ids(store.sessions()) == ["before"]
    with pytest.raises(Unavailable, match=reason):
        store.note("before", "x" * 20_000)
    monkeypatch.setattr(core.store, "open_to_write", files.open_to_write)
    assert store.flush()
    assert store.warnings == []
    assert store.session(run.id).status == "done"
    assert Store(store.path).load(run.id) == run


def test_a_file_taken_away_is_made_anew(store):
    run = replace(make_run(), status="running", results=make_run().results[:2])
    store.save(run)
    store.flush()
    for path in store.path.parent.glob("sessions.sqlite*"):
        path.unlink()
    assert store.sessions() == []
    store.save(make_run())
    assert store.flush()
    assert store.load(run.id) == make_run()


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "sessions.sqlite")
    assert "cannot be stored in" in store.warnings[0]
    store.save(make_run())
    assert not store.flush()
    assert store.load(make_run().id) == make_run()
    assert (store.sessions(), store.count(), store.route_history("support")) == ([], 0, {})
    with pytest.raises(BadInput):
        store.load("nothing")
    caplog.clear()
    store.close()
    assert make_run().id in caplog.text  # the last word on a run that is lost


def test_a_damaged_file_is_told_in_one_line(store):
    store.save(make_run())
    store.close()
    data = bytearray(store.path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    store.path.write_bytes(data)
    with pytest.raises(Unavailable, match="cannot be read"):
        store.load(make_run().id)
    assert store.route_history("support") == {}
    assert "cannot be read" in store.warnings[0]
    store.save(make_run())
    assert not store.flush()


# --- speed: ratios with wide margins; the machine may be busy


def cpu(work, times):
    """The median of the processor seconds that `work` takes."""
    taken = []
    for n in range(times):
        began = time.process_time()
        work(n)
        taken.append(time.process_time() - began)
    return statistics.median(taken)


@pytest.mark.slow
def test_logging_a_run_costs_little_more_than_its_bare_json(tmp_path):
    """20 routes x 100 hits, against the leanest thing possible: one row a route of compact JSON."""
    pool = [Passage(f"page-{n}.md:0-600", f"page-{n}.md", "Title", "word " * 100) for n in range(500)]

    def run(n):
        hits = [
            tuple(Hit(pool[(7 * r + 3 * h) % 500], 1 / (h + n + 1.7)) for h in range(100)) for r in range(20)
        ]
        results = tuple(
            RouteResult(f"route{r}", "Route", "ok", 1.0, hits=some) for r, some in enumerate(hits)
        )
        return Run(f"log{n}", "2026", Query("q"), "support", "f", {}, results, {p.id: p for p in pool})

    made = [run(n) for n in range(15)]
    bare, keeper = sqlite3.connect(tmp_path / "bare.sqlite", isolation_level=None), runs.RunWriter()
    bare.execute("PRAGMA journal_mode = WAL")
    bare.execute("CREATE TABLE results (run TEXT, route TEXT, hits TEXT)")

    def lean(n):
        bare.execute("BEGIN")
        rows = [(made[n].id, r.route, [(h.passage.id, h.score) for h in r.hits]) for r in made[n].results]
        rows = [(id, route, json.dumps(hits, separators=(",", ":"))) for id, route, hits in rows]
        bare.executemany("INSERT INTO results VALUES (?, ?, ?)", rows)
        bare.execute("COMMIT")

    with closing(bare), closing(files.open_to_write(tmp_path / "ours.sqlite")) as connection:

        def ours(n):
            connection.execute("BEGIN IMMEDIATE")
            keeper.write(connection, made[n])
            connection.execute("COMMIT")

        ours(0)
        assert cpu(ours, 15) < 6 * cpu(lean, 15)


def many(store, count):
    """`count` runs written by SQL."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {count - 1}) "
    runs = (
        "INSERT INTO runs (id, created, corpus, fingerprint, question, history, settings, status, wall_ms,"
        " routes, passages) SELECT printf('%08d', i), printf('%08d', i), 'c' || (i % 50), 'f', x'00', '[]',"
        " '{}', 'done', 1.0, '[]', '[]' FROM n"
    )
    results = (
        "INSERT INTO results (run, route, nth, measured_on, title, status, ms, start_ms, wall_ms, hits,"
        " citations, abstained, parameters, recorded, spans) SELECT i + 1, 'bm25', 0, 'c' || (i % 50), '',"
        " 'ok', 1.0, 0, 0, '[]', '[]', 'false', '{}', '{}', '[]' FROM n"
    )

    def work(connection):
        connection.execute("INSERT INTO texts VALUES (x'00', 'How do I return a parcel?')")
        for statement in (runs, results):
            connection.execute(numbers + statement)

    store.write(work, durable=False)


@pytest.mark.slow
def test_a_page_of_100_000_runs_costs_as_much_as_one_of_500(tmp_path):
    with closing(Store(tmp_path / "few.sqlite")) as few, closing(Store(tmp_path / "lots.sqlite")) as lots:
        many(few, 500)
        many(lots, 100_000)
        for page in (
            lambda store: store.sessions(),
            lambda store: store.sessions(before="00000300"),
            lambda store: store.sessions(corpus="c7"),
            lambda store: store.route_history("c7"),
        ):
            assert cpu(lambda _: page(lots), 9) < 5 * cpu(lambda _: page(few), 9)  # noqa: B023
        assert lots.count() == 100_000
