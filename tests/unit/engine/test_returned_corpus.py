"""A corpus made of what a pipeline of one's own returns, by `ask --make-corpus`."""

import threading

import pytest

import core.corpus.index as index_module
import core.engine.engine as engine_module
from core.backends import embedder
from core.backends.external import doors
from core.cli import main
from core.corpus import catalogue
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.pipelines import from_command
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine import returned_corpus
from core.engine.engine import Engine
from core.routes import registry
from tests.fakes import HashEmbedder

PIPELINE = """
def search(query, k):
    return [{"doc_id": f"doc{n}", "text": f"{query} is answered on page {n}."} for n in range(k)][:3]
def nothing(query, k): return []
def fails(query, k): raise ValueError("no index")
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    settings = Settings(home=tmp_path / "home", models_dir=tmp_path / "models", embedder="hash")
    for module in (index_module, embedder):
        monkeypatch.setattr(module, "load_embedder", lambda _name, *, settings: HashEmbedder())
    for module in (index_module, catalogue):
        monkeypatch.setattr(module, "embedder_identity", lambda name, _settings: name)
    monkeypatch.setattr(settings_module, "current", lambda: settings)
    (tmp_path / "rag.py").write_text(PIPELINE)
    for name in ("search", "nothing", "fails"):
        registry.add(from_command(f"{name}={tmp_path}/rag.py:{name}"))
    made = Engine(settings)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    yield made
    registry.forget_given()
    doors.stop_all()


def grow(engine, corpus, names, question, warned):
    return returned_corpus.grow(
        engine,
        corpus,
        names,
        Query(question),
        progress=lambda *_: None,
        cancel=threading.Event(),
        warn=warned.append,
    )


def texts(engine, corpus):
    return sorted(passage.text for _, passage, _ in engine.corpus(corpus).everything())


def test_it_grows_with_each_question_and_keeps_each_passage_once(engine):
    warned = []
    assert grow(engine, "theirs", ["search"], "Who", warned) == 3
    assert grow(engine, "theirs", ["search"], "Who", warned) == 0
    assert grow(engine, "theirs", ["fails", "search"], "When", warned) == 3
    assert len(texts(engine, "theirs")) == 6
    assert "Who is answered on page 0." in texts(engine, "theirs")
    assert len(warned) == 1
    assert "no passages of fails" in warned[0]
    assert "no index" in warned[0]


def test_without_any_passage_there_is_no_corpus(engine):
    with pytest.raises(Unavailable, match="no corpus theirs can be made: none of fails replied"):
        grow(engine, "theirs", ["fails"], "Who", [])
    with pytest.raises(BadInput, match="nothing to make a corpus of"):
        grow(engine, "theirs", ["nothing"], "Who", [])
    with pytest.raises(BadInput, match="'support' is the name of a built-in corpus"):
        grow(engine, "support", ["search"], "Who", [])
    with pytest.raises(BadInput, match="the question is empty"):
        grow(engine, "theirs", ["search"], " ", [])


def test_the_command_makes_the_corpus_and_asks_over_it(engine, capsys, tmp_path):
    asked = ["ask", "Who", "--corpus", "theirs", "--make-corpus", "--routes", "bm25"]
    assert main(asked) == 2
    assert "--make-corpus needs --route NAME=TARGET" in capsys.readouterr().err
    assert main([*asked, "--route", f"search={tmp_path}/rag.py:search"]) == 0
    out, err = capsys.readouterr()
    assert "theirs: 3 new passages returned by search" in err
    assert "Who is answered on page 0." in out
