"""A corpus that takes long to open holds up nobody who works on another one, and is opened once."""

import threading
import time

import pytest

from core.backends import embedder as embedders
from core.corpus import index
from core.domain.errors import Unavailable
from core.domain.outputs import Waited
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.engine import Engine
from core.engine.request import Request
from tests.fakes import HashEmbedder
from tests.until import until

pytestmark = pytest.mark.slow

QUESTION = Query("When is the refund paid?")
ROUTES = ("bm25", "dense", "hybrid_rrf")
TEXTS = ("The refund is paid within five days.", "Customs may hold a parcel.", "Send it back in its box.")


class Slow:
    """Opens corpora as ever, "large" only when the test lets it go on."""

    def __init__(self, monkeypatch):
        self.begun, self.go, self.times = threading.Event(), threading.Event(), 0
        self.error = None
        opens = index.open_corpus

        def open_corpus(name, **more):
            if name == "large":
                self.times += 1
                self.begun.set()
                assert self.go.wait(60)
                if self.error is not None:
                    raise self.error
            return opens(name, **more)

        monkeypatch.setattr(index, "open_corpus", open_corpus)


@pytest.fixture
def slow(monkeypatch):
    return Slow(monkeypatch)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A real one with two indexed corpora."""
    monkeypatch.setattr(index, "load_embedder", lambda *_, **__: HashEmbedder())
    monkeypatch.setattr(embedders, "load_embedder", lambda *_, **__: HashEmbedder())
    monkeypatch.setattr(index, "embedder_identity", lambda name, _settings: name)
    settings = Settings(home=tmp_path / "home", web_search="none")
    for name in ("small", "large"):
        folder = tmp_path / name
        folder.mkdir()
        for number, text in enumerate(TEXTS):
            (folder / f"{number}.txt").write_text(f"{text} {name}")
        index.build(name, folder, settings=settings)
    return Engine(settings)


def asking(engine, corpus):
    """Ask in a session of its own; the list gets the run."""
    got = []
    thread = threading.Thread(
        target=lambda: got.append(engine.ask(Request(QUESTION, corpus, ROUTES, stored=False))), daemon=True
    )
    thread.start()
    return thread, got


@pytest.mark.trust
def test_a_corpus_that_is_being_opened_holds_up_no_other_session(engine, slow):
    waiting = [asking(engine, "large") for _ in range(6)]
    assert slow.begun.wait(10)
    others = [asking(engine, "small") for _ in range(10)]
    for thread, got in others:
        thread.join(30)
        assert [result.status for result in got[0].results] == ["ok"] * 3
    assert not any(got for _, got in waiting), "it cannot have ended before its corpus was opened"
    slow.go.set()
    for thread, got in waiting:
        thread.join(30)
        assert [result.status for result in got[0].results] == ["ok"] * 3
    assert slow.times == 1
    assert waiting[0][1][0].fingerprint == engine.corpus("large").fingerprint


def test_models_clients_and_tools_are_to_be_had_meanwhile(engine, slow):
    opening = engine.opening("large")
    assert slow.begun.wait(10)
    assert engine.llm() is engine.llm()
    assert engine.embedder(engine.settings.embedder).dim == 64
    assert engine.web() is None
    assert engine.rerankers().configured == "embedded"
    assert not opening.done()
    slow.go.set()
    assert opening.result(30).name == "large"


def test_a_run_is_followed_while_its_corpus_is_opened_and_can_be_stopped(engine, slow):
    job = engine.start(Request(QUESTION, "large", ROUTES, stored=False))
    assert slow.begun.wait(10)
    assert [state for _, state, _ in job.pending()] == ["waiting"] * 3
    assert (job.snapshot().corpus, job.snapshot().results) == ("large", ())
    job.cancel()
    run = job.wait(30)  # the corpus is still being opened
    assert run.status == "cancelled"
    slow.go.set()


def test_a_corpus_that_cannot_be_opened_is_told_by_every_route(engine, slow):
    job = engine.start(Request(QUESTION, "large", ROUTES, stored=False))
    assert slow.begun.wait(10)
    slow.error = Unavailable("the index is gone")
    slow.go.set()
    run = job.wait(30)
    assert {(one.status, one.error) for one in run.results} == {("unavailable", "the index is gone")}


def test_routes_that_embed_nothing_do_not_wait_for_the_embedder(engine, monkeypatch):
    go = threading.Event()

    def load(*_, **__):
        assert go.wait(60)
        return HashEmbedder()

    monkeypatch.setattr(embedders, "load_embedder", load)
    job = engine.start(Request(QUESTION, "small", ("bm25", "dense"), stored=False))
    until(lambda: [one.route for one in job.snapshot().results] == ["bm25"])
    until(lambda: any(name == "dense" and spans for name, _, spans in job.pending()))
    time.sleep(0.5)  # what is waited is longer than what the route does
    go.set()
    dense = next(one for one in job.wait(30).results if one.route == "dense")
    assert dense.status == "ok"
    [waited] = [span.output for span in dense.spans if isinstance(span.output, Waited)]
    assert waited.until == "the embedding model is loaded"
    assert waited.over
    assert dense.ms < waited.others_ms, "the wait is no time of the route"


def test_an_embedder_that_cannot_be_loaded_ends_only_the_routes_that_embed(engine, monkeypatch):
    def load(*_, **__):
        raise Unavailable("the embedding model could not be exported to ONNX")

    monkeypatch.setattr(embedders, "load_embedder", load)
    run = engine.ask(Request(QUESTION, "small", ("bm25", "dense"), stored=False))
    assert [one.status for one in run.results] == ["ok", "unavailable"]
    assert "exported to ONNX" in run.results[1].error


def test_a_wait_for_the_embedder_can_be_stopped(engine, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(embedders, "load_embedder", lambda *_, **__: HashEmbedder() if go.wait(60) else None)
    job = engine.start(Request(QUESTION, "small", ("dense",), stored=False))
    until(lambda: any(spans for _, _, spans in job.pending()))
    job.cancel()
    assert job.wait(30).results[0].status == "cancelled"
    go.set()
