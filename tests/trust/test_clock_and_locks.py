"""The clock jumps, or another process holds the store's write lock: nothing is lost or ends early."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest

from core.domain.errors import BadInput, Unavailable
from core.store import Store, files
from tests.runs import make_run
from tests.until import until

pytestmark = pytest.mark.trust
HOUR, YEAR = 3_600, 365 * 86_400
REAL = os.environ.get("KILLS") is not None  # `make test-kills` waits for a lock of 30 s, too


@pytest.fixture
def jump(monkeypatch):
    """Set the clock of this process by so many seconds."""
    real = time.time

    def by(seconds):
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return by


@pytest.mark.parametrize("seconds", [-HOUR, YEAR])
def test_a_jump_of_the_clock_changes_no_undo_time_and_ends_no_run(tmp_path, jump, seconds):
    with closing(Store(tmp_path / "a.sqlite", undo_s=600)) as store:
        for id, status in (("gone", "done"), ("kept", "done"), ("running", "running")):
            store.save(make_run(run_id=id) if status == "done" else _running(id))
        store.flush()
        store.delete("kept")
        jump(seconds)
        store.delete("gone")
        assert store.deletion.due().runs == 0
        assert store.session("running").status == "running"
        store.undelete("kept")
        store.undelete("gone")
        assert sorted(store.ids()) == ["gone", "kept", "running"]
        store.deletion.undo_s = 0
        store.delete("gone")
        store.deletion.due()
        with pytest.raises(BadInput):
            store.undelete("gone")


def _running(id):
    return replace(make_run(run_id=id), status="running")


HOLD = """
import sqlite3, sys, time
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
held.execute("ROLLBACK")
"""


@pytest.mark.process
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("waits", "held"),
    [
        (20.0, 0.5),  # shorter than a write waits
        (0.1, 1.5),  # longer
        pytest.param(
            files.BUSY_S, 30.0, marks=pytest.mark.skipif(not REAL, reason="takes 30 s: make test-kills")
        ),
    ],
)
def test_a_lock_held_by_another_process_loses_nothing(tmp_path, monkeypatch, waits, held):
    monkeypatch.setattr(files, "BUSY_S", waits)
    path = tmp_path / "a.sqlite"
    with closing(Store(path)) as store:
        store.save(make_run(run_id="before"))
        assert store.flush()
        command = [sys.executable, "-c", HOLD, str(path), str(held)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout.readline() == "held\n"
            begun = time.monotonic()
            store.save(make_run(run_id="meanwhile"))
            assert store.load("meanwhile") == make_run(run_id="meanwhile"), "it waits, and can be read"
            noted, said = True, ""
            try:
                store.note("before", "said meanwhile")
            except Unavailable as error:
                noted, said = False, str(error)
            assert noted or ("sessions cannot be stored" in said and waits < held + 1)
            assert time.monotonic() - begun < max(waits, held) + 10
        until(lambda: store.flush() and not store.warnings)
        assert sorted(store.ids()) == ["before", "meanwhile"]
        assert store.session("before").note == ("said meanwhile" if noted else "")
        store.note("before", "said afterwards")
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
