"""`ask` and `eval` with named settings."""

import json

import pytest

from core.cli import corpora
from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.store import Store, presets
from core.store.presets import Preset
from tests.fakes import FakeEngine, ScriptedLLM


@pytest.fixture
def engine(tmp_path, monkeypatch):
    made = FakeEngine(tmp_path, llm=ScriptedLLM({}), store=Store(tmp_path / "runs.sqlite"))
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    presets.save(made.store, Preset("mine", "tiny", {"hybrid_rrf": {"k": 7}, "bm25": {}}, 0.3))
    yield made
    made.store.close()


@pytest.fixture
def requests(engine):
    seen, start = [], engine.start
    engine.start = lambda request: (seen.append(request), start(request))[1]
    return seen


def test_ask_takes_routes_parameters_and_evidence_of_the_settings(engine, requests, call):
    code, out, _ = call("ask", "box", "--corpus", "tiny", "--preset", "mine", "--json")
    assert code == 0
    (request,) = requests
    assert set(request.routes) == {"hybrid_rrf", "bm25"}
    assert request.parameters == {"hybrid_rrf": {"k": 7}}
    assert request.style.evidence == 0.3
    assert {r["route"] for r in json.loads(out)["results"]} == {"hybrid_rrf", "bm25"}


def test_a_parameter_given_beside_them_stands(engine, requests, call):
    beside = ("--routes", "hybrid_rrf,dense", "--parameter", "hybrid_rrf.k=9")
    assert call("ask", "box", "--corpus", "tiny", "--preset", "mine", *beside)[0] == 0
    assert requests[0].routes == ("hybrid_rrf", "dense")
    assert requests[0].parameters == {"hybrid_rrf": {"k": "9"}}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(corpora, "ensure", lambda *_: None)


@pytest.mark.parametrize("command", [("ask", "box", "--corpus", "tiny"), ("eval", "tiny")])
def test_what_cannot_be_used_is_one_line_of_error(engine, call, command, tiny, monkeypatch):
    code, _, err = call(*command, "--preset", "gone")
    assert (code, "there is no preset 'gone'; known: mine" in err) == (2, True)
    old = Preset("mine", "tiny", {"hybrid_rrf": {"gone": 1}})
    monkeypatch.setattr(presets, "every", lambda *_: (old,))
    code, _, err = call(*command, "--preset", "mine")
    assert (code, "cannot be used as it is: route hybrid_rrf has no parameter 'gone'" in err) == (2, True)


def test_eval_takes_them_too(engine, requests, call, tiny, tmp_path):
    questions, qrels = tmp_path / "q.jsonl", tmp_path / "qrels.txt"
    questions.write_text('{"id": "q1", "text": "Who reports a crushed box?", "split": "test"}')
    qrels.write_text("q1 0 crushed:0-80 1")
    labels = ("--questions", questions, "--qrels", qrels)
    beside = ("--parameter", "hybrid_rrf.k=9", "--answers", "all", "--answer-by", "extract")
    code, _, err = call("eval", "tiny", "--preset", "mine", *labels, *beside)
    assert code == 0, err
    (request,) = requests
    assert set(request.routes) == {"hybrid_rrf", "bm25"}
    assert request.parameters["hybrid_rrf"]["k"] == 9
    assert request.style.evidence == 0.3
