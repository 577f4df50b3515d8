"""Work that is killed at any moment goes on to the same result, and leaves nothing behind that stops it.

`make test` kills each kind of work twice, `make test-kills` at twenty points.
"""

import json
import os
import random
import signal
import subprocess
import sys

import pytest
from filelock import FileLock

from core.domain.settings import PROJECT
from tests.kills.work import WORK

KILLS = int(os.environ.get("KILLS", "2"))  # of each kind of work
AFTER_S = (0.0, 0.002, 0.02)  # after a file operation
pytestmark = [pytest.mark.trust, pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(120 + 60 * KILLS)]


class Forks:
    """The process that does the work in children of its own."""

    def __init__(self):
        command = [sys.executable, "-m", "tests.kills.work"]
        self.process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, work, folder, event=None, seconds=0.0):
        """Give the exit code, negative for a signal, and what is in the folder's result."""
        folder.mkdir(exist_ok=True)
        print(json.dumps([work, str(folder), event, seconds]), file=self.process.stdin, flush=True)
        status = os.waitstatus_to_exitcode(int(self.process.stdout.readline()))
        result = folder / "result.json"
        return status, json.loads(result.read_text()) if status == 0 else None


@pytest.fixture(scope="module")
def forks():
    made = Forks()
    yield made
    made.process.stdin.close()
    assert made.process.wait(10) == 0
    made.process.stdout.close()


@pytest.mark.parametrize("work", WORK)
def test_killed_work_goes_on_to_the_same_result(work, forks, tmp_path):
    status, (operations, whole) = forks(work, tmp_path / "whole")
    assert status == 0
    chance = random.Random(work)
    for number, at in enumerate(sorted(chance.sample(range(1, operations), KILLS))):
        folder = tmp_path / str(number)
        killed, _ = forks(work, folder, at, chance.choice(AFTER_S))
        assert killed in (-signal.SIGKILL, 0), at  # 0: it ended within that moment
        (folder / "result.json").unlink(missing_ok=True)
        status, found = forks(work, folder)
        assert status == 0, at
        assert found[1] == whole, at
        left = [path for path in folder.rglob("*") if path.name.startswith(".new-") or path.suffix == ".part"]
        assert not left, at
        for lock in folder.rglob("*.lock"):
            with FileLock(lock, timeout=0):
                pass
