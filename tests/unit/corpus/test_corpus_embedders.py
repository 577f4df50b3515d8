"""A corpus with the vectors of several embedders: what is made, kept, paid, asked for and never mixed up."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from core.cli.corpora import with_embedders
from core.corpus import catalogue, index
from core.corpus.corpus import Further
from core.corpus.embeddings import UNPRICED, Checkpoint, Estimate, gate
from core.corpus.enrichments import store
from core.domain.errors import BadInput, Cancelled, ModelFailed, NotConfirmed, Unavailable
from core.domain.models import EmbedderSettings
from core.domain.settings import Settings
from core.domain.types import Query
from core.engine.endpoints import endpoints, try_endpoint
from core.engine.engine import Engine
from core.engine.request import Request
from core.routes.registry import ours, pick, routes
from tests import embedding_services as services
from tests.embedding_services import KEY, Refused, served, unit
from tests.loopback import loopback

WORDS = ("box", "key", "parcel", "return", "customs", "letter", "stamp", "scale", "label", "crate")


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for number, word in enumerate(WORDS):
        (folder / f"{word}.md").write_text(f"# About the {word}\n\nThe {word} is number {number}.\n")
    return folder


@pytest.fixture
def server():
    with loopback(served(services.openai)) as found:
        yield found


@pytest.fixture
def settings(tmp_path, server, monkeypatch):
    """Two services at one address: `a` is the setting, `b` prefixes what it embeds."""
    monkeypatch.setattr("core.backends.llm.pace.PAUSE_S", 0.001)
    monkeypatch.setenv("TEST_EMBEDDING_KEY", KEY)
    common = {"model": "small", "base_url": f"{server.url}/v1", "key_env": "TEST_EMBEDDING_KEY", "price": 2.0}
    other = EmbedderSettings(**common, query_prefix="b: ", document_prefix="b: ", batch=4)
    tables = {"a": EmbedderSettings(**common), "b": other}
    return Settings(home=tmp_path / "home", embedder="a", embedders=tables)


def texts(server):
    sent = [json.loads(one.split(b"\r\n\r\n", 1)[1])["input"] for one in server.requests]
    return [text for some in sent for text in some]


def source(documents, settings, *embedders):
    return replace(catalogue.source(str(documents), settings=settings), embedders=embedders)


def only_b(settings, server, **more):
    """The settings with the service `b` alone, at another server."""
    table = settings.embedders["b"].model_copy(update={"base_url": f"{server.url}/v1", **more})
    return settings.model_copy(update={"embedders": {"b": table}})


def ask(engine, embedder="", route="dense"):
    parameters = {route: {"embedder": embedder}} if embedder else {}
    return engine.ask(Request(Query("the parcel"), "documents", (route,), parameters)).results[0]


def test_each_embedder_has_its_own_vectors_and_is_asked_with_its_own_question(documents, settings, server):
    corpus = index.build(None, source(documents, settings, "a", "b"), settings=settings)
    assert catalogue.embedders_of(corpus.info, settings) == ["a", "b"]
    for file in settings.home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    other = index.by_embedder(corpus, "b", settings=settings)
    assert isinstance(other, Further)
    passage = corpus.passages([0])[0]
    searched = f"{passage.title} {passage.text}"
    np.testing.assert_allclose(corpus.vectors([0])[0], unit(searched), rtol=1e-5)
    np.testing.assert_allclose(other.vectors([0])[0], unit(f"b: {searched}"), rtol=1e-5)
    assert other.fingerprint != corpus.fingerprint
    engine = Engine(settings)
    server.requests.clear()
    asked = ("dense", "bm25", "hybrid_rrf"), {"dense": {"embedder": "b"}}
    results = engine.ask(Request(Query("the parcel"), "documents", *asked)).results
    assert [one.status for one in results] == ["ok", "ok", "ok"]
    assert {"b: the parcel", "the parcel"} <= set(texts(server))
    by_b = next(one for one in results if one.route == "dense")
    expected = float(other.vectors([other.row(by_b.hits[0].passage.id)])[0] @ unit("b: the parcel"))
    assert by_b.hits[0].score == pytest.approx(expected, abs=1e-5)


def test_a_corpus_without_the_vectors_says_so_and_calls_nobody(documents, settings, server):
    index.build(None, str(documents), settings=settings)
    now = settings.model_copy(update={"embedder": "b"})
    engine = Engine(now)
    server.requests.clear()
    refused = ask(engine)
    assert refused.status == "unavailable"
    assert "index documents --embedder b" in refused.error
    assert ask(engine, route="bm25").status == "ok"
    assert ask(Engine(settings), "b").status == "unavailable"
    assert texts(server) == []
    assert catalogue.describe("documents", now).state == "stale"
    index.build(None, source(documents, now, "a", "b"), settings=now)
    assert ask(Engine(now)).status == "ok"  # a was chosen for the corpus


def test_an_embedder_that_becomes_the_first_takes_its_vectors_along(documents, settings, server):
    index.build(None, source(documents, settings, "a", "b"), settings=settings)
    server.requests.clear()
    corpus = index.build(None, source(documents, settings, "b", "a"), settings=settings)
    assert corpus.info.embedder == "b"
    assert catalogue.embedders_of(corpus.info, settings) == ["b", "a"]
    assert texts(server) == []
    assert catalogue.describe("documents", settings).state == "ready"
    index.build(None, "documents", settings=settings)  # as it was chosen
    assert texts(server) == []
    (documents / "new.md").write_text("# New\n\nOne more.\n")
    index.build(None, "documents", settings=settings)
    assert sorted(text for text in texts(server) if "more" in text) == ["New One more.", "b: New One more."]


def test_what_was_paid_for_is_kept_when_a_build_is_stopped_in_the_middle(documents, settings):
    seen, stop = [], threading.Event()

    def falters(path, headers, body):
        if len(seen) == 3:
            raise Refused(401, {"error": {"message": f"revoked: {KEY}"}})
        seen.append(body["input"])
        return services.openai(path, headers, body)

    def stops(path, headers, body):
        if body["input"] != ["Is it there?"]:
            stop.set()
        return services.openai(path, headers, body)

    with loopback(served(falters)) as server:
        now = only_b(settings, server, at_once=1, batch=3)
        with pytest.raises(ModelFailed) as caught:
            index.build(None, source(documents, now, "b"), settings=now)
        assert KEY not in str(caught.value)
        paid = [text for some in seen for text in some if text != "Is it there?" and "b: Is" not in text]
        assert len(paid) == 6
        seen[:] = [[]]
        with pytest.raises(ModelFailed):
            index.build(None, source(documents, now, "b"), settings=now)
        assert not {text for some in seen for text in some} & set(paid)
    with loopback(served(stops)) as server:
        now = only_b(settings, server, query_prefix="")
        with pytest.raises(Cancelled):
            index.build(None, source(documents, now, "b"), settings=now, cancel=stop)


def test_another_build_does_not_forget_what_was_paid_for(tmp_path):
    one, other = Checkpoint(tmp_path, "paid"), Checkpoint(tmp_path, "free")
    one.add(np.ones((1, 16), np.uint8), np.ones((1, 4), np.float32))
    other.add(np.ones((1, 16), np.uint8), np.ones((1, 4), np.float32))
    other.clear()
    assert [len(keys) for keys, _ in one.sound()] == [1]
    assert list(other.sound()) == []


def test_above_a_limit_nothing_is_embedded_until_it_is_confirmed(documents, settings, server):
    now = settings.model_copy(update={"embed_limit_cost": 0.0001})
    with pytest.raises(NotConfirmed, match="embed_limit_cost"):
        index.build(None, str(documents), settings=now)
    assert texts(server) == ["Is it there?"]
    told = []
    begin = gate(now, confirmed=True, told=told.append)
    corpus = index.build(None, str(documents), settings=now, begin=begin)
    assert told[0].texts == len(WORDS)
    assert told[0].cost == pytest.approx(told[0].tokens * 2.0 / 1e6)
    assert corpus.info.tokens > 0
    assert corpus.info.cost == pytest.approx(corpus.info.tokens * 2.0 / 1e6)
    assert isinstance(NotConfirmed("x"), BadInput)
    unpriced = Estimate("x", 1, UNPRICED + 1, cost=None, seconds=1.0, elsewhere=True)
    assert "1,000,000 tokens without a price" in unpriced.above(now)
    for other in ({"tokens": UNPRICED}, {"cost": 0.0}, {"elsewhere": False}):
        assert replace(unpriced, **other).above(now) == ""


def test_pieces_of_passages_belong_to_their_embedder(documents, settings):
    corpus = index.build(None, source(documents, settings, "a", "b"), settings=settings)
    store.build("sentences", corpus, settings=settings)
    other = index.by_embedder(corpus, "b", settings=settings)
    with pytest.raises(Unavailable, match="index documents --embedder b --with sentences"):
        store.load("sentences", other, settings)
    made = store.build("sentences", other, settings=settings)
    assert made.embedder == "b"
    assert store.describe("sentences", "documents", settings).embedder == "a"


def test_a_route_with_an_embedder_is_a_route_of_its_own(documents, settings):
    index.build(None, source(documents, settings, "a", "b"), settings=settings)
    engine = Engine(settings)
    asked = Request(Query("the parcel"), "documents", ("dense@a", "dense@b", "bm25"))
    results = engine.ask(asked).results
    assert {one.route: one.status for one in results} == dict.fromkeys(("dense@a", "dense@b", "bm25"), "ok")
    assert [one.parameters.get("embedder") for one in results] == ["a", "b", None]
    assert "dense@a" in routes()
    assert "dense@a" not in list(routes())
    assert routes().get("dense@nobody") is None
    for route in ours().values():
        assert ("embedder" in {parameter.name for parameter in route.parameters}) is route.embeds
    for wrong in ("bm25@a", "dense@nobody", "nobody@a"):
        with pytest.raises(BadInput):
            pick(wrong)


def test_index_adds_embedders_and_removes_them(documents, settings):
    index.build(None, str(documents), settings=settings)
    known = catalogue.source("documents", settings=settings)
    assert with_embedders(known, ["b"], [], settings).embedders == ("b", "a")
    index.build(None, with_embedders(known, ["a", "b"], [], settings), settings=settings)
    known = catalogue.source("documents", settings=settings)
    assert with_embedders(known, [], ["a"], settings).embedders == ("b",)
    corpus = index.build(None, with_embedders(known, [], ["b"], settings), settings=settings)
    assert catalogue.embedders_of(corpus.info, settings) == ["a"]
    for dropped in (["c"], ["a", "b"], ["a"]):
        with pytest.raises(BadInput):
            with_embedders(catalogue.source("documents", settings=settings), [], dropped, settings)


def test_doctor_tests_each_service_and_names_the_routes(settings, monkeypatch):
    engine, stop = Engine(settings), threading.Event()
    listed = {one.name: one for one in endpoints(settings)}
    tested = try_endpoint(engine, listed["a"], lambda *_: None, stop)
    assert (tested.state, tested.tested["dimensions"]) == ("ok", services.DIM)
    assert "dense" in listed["a"].routes
    assert "bm25" not in listed["a"].routes
    assert "rerank" in listed["reranker"].routes
    monkeypatch.delenv("TEST_EMBEDDING_KEY")
    (unset,) = (one for one in endpoints(settings) if one.name == "a")
    assert "TEST_EMBEDDING_KEY" in unset.error
