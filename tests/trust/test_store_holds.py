"""The store under bad luck: many writers, processes killed at any moment, a disk that is full."""

import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk
from core.store import Store
from core.store.labels import Pooled
from tests.runs import make_run

pytestmark = pytest.mark.trust

ROOT = Path(__file__).resolve().parents[2]
COUNT = 100  # runs and labels of each writer
WRITERS = 20
ROUNDS, AT_ONCE = 5, 3  # kills

WRITE = """
import sys, threading
from dataclasses import replace
from pathlib import Path
from core.evaluation.labels import desk
from core.store.labels import Judgement
from core.store import Store
from tests.runs import make_run

path, process, threads, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store, base = Store(path), make_run(size=5)
say = threading.Lock()

def told(what):
    with say:
        print(what, flush=True)

def runs(writer):
    for n in range(count):
        run = replace(base, id=f"{writer}-{n}", results=base.results[:3])
        store.save(replace(run, status="running", results=run.results[:1]))
        store.save(run)
        if n % 5 == 4 or n == count - 1:
            assert store.flush(), store.warnings
            for done in range(n - n % 5, n + 1):
                told(f"run {writer}-{done}")

def labels(writer):
    for n in range(count):
        number = desk.judge(store, "Set", Judgement("q", f"p{n % 10}", writer, "person", "grade", n % 4))
        told(f"label {number} {writer}")

names = [f"{process}.{n}" for n in range(threads)]
work = [threading.Thread(target=do, args=(name,)) for name in names for do in (runs, labels)]
[thread.start() for thread in work]; [thread.join() for thread in work]
"""


@pytest.fixture
def path(tmp_path):
    """A file with a label set of ten passages."""
    with closing(Store(tmp_path / "sessions.sqlite")) as store:
        desk.create(store, "Set", "support", [Question("q", Query("What of it?"))])
        pool = [Pooled(Passage(f"p{n}", "d", "T", f"text {n}", 0, 9), (("bm25", 1),)) for n in range(10)]
        desk.add_to_pool(store, "Set", {"q": pool})
        return store.path


def begin(path, process, threads, count):
    command = [sys.executable, "-c", WRITE, str(path), process, str(threads), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(path, lines):
    """All that was told to be stored is there, whole, and the file is sound."""
    told = [line.split() for line in lines]
    runs = {words[1] for words in told if words[0] == "run"}
    labels = {(int(words[1]), words[2]) for words in told if words[0] == "label"}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(Store(path)) as store:
        assert runs <= set(store.ids())
        wanted = make_run(size=5).results[:3]
        for id in sorted(runs)[:: max(1, len(runs) // 100)]:
            assert store.load(id).results == wanted
            assert store.load(id).status == "done"
        assert labels <= {(one.number, one.annotator) for one in desk.load(store, "Set").judgements}
    return len(runs), len(labels)


def test_twenty_writers_of_four_processes_lose_nothing(path):
    processes = [begin(path, f"w{n}", WRITERS // 4, COUNT) for n in range(4)]
    lines = []
    for process in processes:
        out, error = process.communicate(timeout=170)
        assert (error, process.returncode) == ("", 0)
        lines += out.splitlines()
    assert check(path, lines) == (WRITERS * COUNT, WRITERS * COUNT)


def test_fifteen_kills_lose_nothing_that_was_told_to_be_stored(path):
    """Three processes write at a time, and each is killed after so many lines: in the midst of the next."""
    chance = random.Random(7)
    lines, killed = [], 0
    for turn in range(ROUNDS):
        processes = [begin(path, f"k{turn}{n}", 2, 100_000) for n in range(AT_ONCE)]
        for process in processes:
            lines += [process.stdout.readline() for _ in range(chance.randrange(1, 120))]
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            rest = process.stdout.read()
            lines += rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1]
            process.stdout.close()
            process.stderr.close()
    assert killed == ROUNDS * AT_ONCE
    runs, labels = check(path, lines)
    assert min(runs, labels) > 0
    with closing(Store(path)) as store:
        assert {store.session(id).status for id in store.ids(status="interrupted")} <= {"interrupted"}
        assert store.ids(status="running") == []


FULL = """
import resource, signal, sys
from dataclasses import replace
from pathlib import Path
from core.store import Store
from tests.runs import make_run

store, run = Store(Path(sys.argv[1])), make_run()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
saved = 0
while saved < 40:
    store.save(replace(run, id=f"r{saved}", query=replace(run.query, text=f"{saved} " * 3000)))
    saved += 1
    if not store.flush():
        break
print(saved, len(store.warnings), store.warnings[0])
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
assert store.flush(), store.warnings
print(store.warnings)
store.close()
"""


def test_a_place_without_room_is_told_and_what_waits_is_stored_once_there_is_room(path):
    """No file of the process may grow beyond so many bytes: writes fail as they do on a full disk."""
    limit = path.stat().st_size + 150_000
    command = [sys.executable, "-c", FULL, str(path), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    saved, count, warning = first.split(maxsplit=2)
    assert (count, last) == ("1", "[]")
    assert 1 < int(saved) < 40
    assert warning.startswith(f"sessions cannot be stored in {path}: ")
    with closing(Store(path)) as store:
        assert len(store.ids()) == int(saved)
        for id in ("r0", f"r{int(saved) - 1}"):
            assert store.load(id).results == make_run().results
