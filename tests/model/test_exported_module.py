"""An exported route in a process of its own, over a real index: the hits of `ask`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.model
ROOT = Path(__file__).resolve().parents[2]
ROUTES = ("hybrid_rrf", "rerank")
DOCUMENTS = {
    "returns": "To send an item back, ask for a Return Merchandise Authorization within 30 days.",
    "refunds": "A refund is paid five business days after the returned item was inspected.",
    "fragile": "Glass is double boxed and takes one more day by standard shipping.",
    "crushed": "If the box arrived crushed, take photos of all six sides within 48 hours.",
}
QUESTION = "When is the money for a returned item paid?"


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Run Python over a home with a small indexed corpus, and give what it wrote."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "handbook"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    env = {**os.environ, "ROUTESCOPE_HOME": str(home), "PYTHONPATH": str(ROOT)}

    def run(*args, cwd=ROOT):
        done = subprocess.run(
            [sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=170
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-m", "core", "index", str(folder), "--name", "handbook")
    return run


@pytest.fixture(scope="module")
def asked(call):
    """The result of `ask` by route."""
    said = call("-m", "core", "ask", QUESTION, "--corpus", "handbook", "--routes", ",".join(ROUTES), "--json")
    return {result["route"]: result for result in json.loads(said)["results"]}


@pytest.mark.parametrize("route", ROUTES)
def test_the_module_finds_what_ask_finds(tmp_path, call, asked, route):
    made = tmp_path / "chosen.py"
    call("-m", "core", "module", route, "--corpus", "handbook", "--out", str(made))
    found = json.loads(call(str(made), QUESTION, cwd=tmp_path))
    assert [(hit["id"], hit["score"]) for hit in found] == [
        (hit["id"], hit["score"]) for hit in asked[route]["hits"]
    ]
    assert found
