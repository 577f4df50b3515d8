"""An exported route: a module that any linter reads, and that finds what the engine finds."""

import ast
import importlib.util
import json
import logging

import pytest

import core.engine.engine
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation.release.module import module
from core.store import Store, presets
from core.store.presets import Preset
from tests.fakes import FakeEngine

QUESTION = "Who has to report crushed boxes with photos?"


@pytest.fixture
def engine(tmp_path):
    return FakeEngine(tmp_path)


@pytest.fixture
def load(tmp_path, engine, monkeypatch):
    """Write a module's source down, import it, and have it use the engine of the test."""
    monkeypatch.setattr(core.engine.engine, "Engine", lambda _settings: engine)

    def loaded(source, name="route"):
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return loaded


def test_it_finds_what_the_engine_finds(engine, load):
    for route in ("bm25", "hybrid_rrf", "rerank", "mmr"):
        made = load(module(engine, route, "tiny"), route)
        direct = engine.ask(Request(Query(QUESTION), "tiny", (route,), stored=False)).results[0]
        assert made.ask(QUESTION).hits == direct.hits != ()


def test_parameters_and_answers_are_those_that_were_chosen(engine, load):
    engine.fake_llm.replies = {"evidence": "0.9", "answer": "Within 48 hours [1]."}
    made = load(module(engine, "hybrid_linear", "tiny", {"alpha": 0.1}, evidence=0.3))
    assert made.PARAMETERS["alpha"] == 0.1
    assert set(made.PARAMETERS) == {"alpha", "embedder", "norm"}
    request = Request(Query(QUESTION), "tiny", ("hybrid_linear",), {"hybrid_linear": {"alpha": 0.1}})
    assert made.ask(QUESTION).hits == engine.ask(request).results[0].hits
    assert made.ask(QUESTION, answer=True).answer == "Within 48 hours [1]."
    assert made.EVIDENCE == 0.3


def test_a_changed_corpus_is_told_and_a_route_that_does_not_end_well_raises(engine, load, caplog):
    made = load(module(engine, "bm25", "tiny").replace(repr(engine.corpus("tiny").fingerprint), "'other'"))
    with caplog.at_level(logging.WARNING):
        made.ask(QUESTION)
    assert "corpus tiny has changed" in caplog.text
    engine.fake_llm.missing = "no model here"
    with pytest.raises(Unavailable, match="no model here"):
        load(module(engine, "hyde", "tiny")).ask(QUESTION)


@pytest.mark.parametrize("purpose", ['"""; import os; os.abort()', "a\\", "{route!r}", "new\nline"])
def test_no_text_leaves_the_docstring(engine, purpose):
    tree = ast.parse(module(engine, "bm25", "tiny", purpose=purpose))
    assert isinstance(tree.body[0], ast.Expr)
    imports = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert imports == ["json", "logging", "sys"]


@pytest.mark.parametrize(
    ("route", "more", "said"),
    [
        ("nothing", {}, "nothing"),
        ("bm25", {"file": "a-b.py"}, "Python can import"),
        ("bm25", {"file": "class.py"}, "Python can import"),
        ("hybrid_linear", {"parameters": {"alpha": 7}}, "alpha"),
        ("bm25", {"evidence": 2.0}, "0 to 1"),
    ],
)
def test_what_cannot_be_a_module_is_refused(engine, route, more, said):
    with pytest.raises(BadInput, match=said):
        module(engine, route, "tiny", **more)


def test_the_command_writes_it_once(engine, tmp_path, monkeypatch, capsys):
    from core.cli import main

    engine.store = Store(tmp_path / "s.sqlite")
    presets.save(engine.store, Preset("mine", "tiny", {"hybrid_linear": {"alpha": 0.2}}, 0.4))
    monkeypatch.setattr(core.engine.engine, "shared_engine", lambda: engine)
    out = tmp_path / "chosen.py"
    args = ["module", "hybrid_linear", "--corpus", "tiny", "--preset", "mine", "--out", str(out)]
    assert main([*args, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["source"] == out.read_text()
    assert "'alpha': 0.2" in out.read_text()
    assert "EVIDENCE = 0.4" in out.read_text()
    assert main(args) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*args, "--force"]) == 0
    engine.store.close()
