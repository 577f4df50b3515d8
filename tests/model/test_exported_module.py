"""An exported route in a process of its own, over a real index: the hits of `ask`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.model
ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = {
    "returns": "To send an item back, ask for a Return Merchandise Authorization within 30 days.",
    "refunds": "A refund is paid five business days after the returned item was inspected.",
    "fragile": "Glass is double boxed and takes one more day by standard shipping.",
    "crushed": "If the box arrived crushed, take photos of all six sides within 48 hours.",
}
QUESTION = "When is the money for a returned item paid?"


@pytest.mark.parametrize("route", ["hybrid_rrf", "rerank"])
def test_the_module_finds_what_ask_finds(tmp_path, route):
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    env = {**os.environ, "ROUTESCOPE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}

    def call(*args, cwd=ROOT):
        done = subprocess.run(
            [sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=170
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    call("-m", "core", "index", str(folder), "--name", "handbook")
    made = tmp_path / "chosen.py"
    call("-m", "core", "module", route, "--corpus", "handbook", "--out", str(made))
    asked = json.loads(
        call("-m", "core", "ask", QUESTION, "--corpus", "handbook", "--routes", route, "--json")
    )
    found = json.loads(call(str(made), QUESTION, cwd=tmp_path))
    assert [(hit["id"], hit["score"]) for hit in found] == [
        (hit["id"], hit["score"]) for hit in asked["results"][0]["hits"]
    ]
    assert found
