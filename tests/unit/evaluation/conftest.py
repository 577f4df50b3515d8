"""What several tests of evaluations begin with: an empty store, and the command line in this process."""

from contextlib import closing

import pytest

from core.cli import main
from core.store import Store


@pytest.fixture
def store(tmp_path):
    with closing(Store(tmp_path / "store.sqlite")) as opened:
        yield opened


@pytest.fixture
def call(capsys):
    """Run one command line in this process: (exit code, stdout, stderr)."""

    def run(*args):
        code = main([str(arg) for arg in args])
        return code, *capsys.readouterr()

    return run
