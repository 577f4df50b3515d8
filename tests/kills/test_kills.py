"""Work that is killed at any moment goes on to the same result, and leaves nothing behind that stops it.

`make test` kills each kind of work twice, `make test-kills` at twenty points.
"""

import json
import os
import random
import signal
import subprocess
import sys
from functools import cache

import pytest
from filelock import FileLock

from core.domain.settings import PROJECT
from tests.kills.work import WORK

KILLS = int(os.environ.get("KILLS", "2"))  # of each kind of work
AFTER_S = (0.0, 0.002, 0.02)  # after a file operation
pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(60 + 30 * KILLS)]


def run(work, folder, *more):
    command = [sys.executable, "-m", "tests.kills.work", work, str(folder), *map(str, more)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The number of file operations and the result of work that is not killed."""

    @cache
    def done(work):
        ended = run(work, tmp_path_factory.mktemp(work))
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return done


@pytest.mark.parametrize("work", WORK)
def test_killed_work_goes_on_to_the_same_result(work, whole, tmp_path):
    operations, result = whole(work)
    chance = random.Random(work)
    for number, at in enumerate(sorted(chance.sample(range(1, operations), KILLS))):
        folder = tmp_path / str(number)
        killed = run(work, folder, at, chance.choice(AFTER_S))
        assert killed.returncode in (-signal.SIGKILL, 0), killed.stderr  # 0: it ended within that moment
        resumed = run(work, folder)
        assert resumed.returncode == 0, (at, resumed.stderr)
        assert json.loads(resumed.stdout)[1] == result, at
        left = [path for path in folder.rglob("*") if path.name.startswith(".new-") or path.suffix == ".part"]
        assert not left, at
        for lock in folder.rglob("*.lock"):
            FileLock(lock, timeout=0).acquire().lock.release()
