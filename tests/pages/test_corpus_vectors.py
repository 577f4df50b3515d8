"""Vectors of another embedder, added on Corpus: the cost is told and confirmed before anything is sent."""

import json

import pytest

from core.corpus import builds, catalogue, index
from core.domain.models import EmbedderSettings
from core.domain.settings import Settings
from core.engine import engine as engine_module
from tests import embedding_services as services
from tests.loopback import loopback
from tests.pages.reading import plain


@pytest.fixture
def server():
    with loopback(services.served(services.openai)) as found:
        yield found


@pytest.fixture
def shop(engine, tmp_path, monkeypatch, server):
    """A corpus indexed with the service `a`; `b` is in the settings too."""
    monkeypatch.undo()
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    monkeypatch.setattr(catalogue, "BUILT_IN", {})
    monkeypatch.setenv("TEST_EMBEDDING_KEY", services.KEY)
    common = {"base_url": f"{server.url}/v1", "key_env": "TEST_EMBEDDING_KEY", "price": 2.0}
    tables = {name: EmbedderSettings(model=f"small-{name}", **common) for name in ("a", "b")}
    engine.settings = Settings(home=engine.settings.home, embedder="a", embedders=tables)
    folder = tmp_path / "shop"
    folder.mkdir()
    for word in ("box", "key", "parcel"):
        (folder / f"{word}.md").write_text(f"# About the {word}\n\nThe {word} waits at the depot.\n")
    index.build("shop", folder, settings=engine.settings)
    monkeypatch.setattr(engine, "corpus", lambda name: index.open_corpus(name, settings=engine.settings))
    return engine


def embedded_by(server, model):
    """The texts that a model was sent, but for the word that tries it."""
    sent = [json.loads(one.split(b"\r\n\r\n", 1)[1]) for one in server.requests]
    return [text for one in sent if one["model"] == model for text in one["input"] if len(text) > 20]


def test_vectors_are_added_once_their_cost_is_confirmed(visit, shop, server):
    app = visit("corpus.py", corpus="shop", tab="State")
    assert app.selectbox(key="add_embedder").options == ["b"]
    app.button(key="add_vectors").click().run()
    asked = builds.get("shop")
    asked.wait(20)
    assert asked.confirm is not None
    assert embedded_by(server, "small-b") == []

    app = visit("corpus.py", corpus="shop", tab="State")
    (estimate,) = [plain(one.value) for one in app.main.warning if "cost about" in plain(one.value)]
    assert "3 texts" in estimate
    app.button(key="confirm:shop").click().run()
    builds.get("shop").wait(20)
    info = catalogue.describe("shop", shop.settings).info
    assert catalogue.embedders_of(info, shop.settings) == ["a", "b"]
    assert len(embedded_by(server, "small-b")) == 3
    app = visit("corpus.py", corpus="shop", tab="State")
    assert "add_vectors" not in [one.key for one in app.button]
