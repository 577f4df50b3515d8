"""The demo: figures of routes that need no model, and a gate that stops the change made to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from core.cli.demo import AFTER, BEFORE, CHANGE, ROUTES
from core.domain.program import PROJECT


@pytest.mark.slow
@pytest.mark.process
def test_it_measures_in_an_empty_folder_and_its_gate_fails(tmp_path):
    home, empty = tmp_path / "home", tmp_path / "empty"
    empty.mkdir()
    paths = {"PYTHONPATH": str(PROJECT), "ROUTESCOPE_HOME": str(home), "ROUTESCOPE_MODELS_DIR": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "core", "demo", "--json"],
        cwd=empty,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert set(found["before"]["routes"]) == set(ROUTES)
    assert all(row["ndcg@10"] > 0.3 for row in found["before"]["routes"].values())
    assert not found["passes"]
    assert f"against {BEFORE}" in found["comment"]
    assert "Broken" in found["comment"]
    assert found["after"]["routes"].keys() == {CHANGE}
    assert sorted(path.name for path in (home / "evaluations").iterdir()) == [BEFORE, AFTER]
    assert list(empty.iterdir()) == []
