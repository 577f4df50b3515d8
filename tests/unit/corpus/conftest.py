"""A home of its own for each test, and an embedder by words that counts what it embeds."""

import pytest

from core.corpus import catalogue, index
from core.domain.settings import Settings
from tests.fakes import HashEmbedder


class Counting(HashEmbedder):
    """Remembers every text it embedded; `stop_after` presses Stop after that many."""

    def __init__(self):
        super().__init__()
        self.embedded = []
        self.stop, self.stop_after = None, 0

    def embed(self, texts):
        self.embedded += texts
        if self.stop is not None and len(self.embedded) >= self.stop_after:
            self.stop.set()
        return super().embed(texts)


@pytest.fixture
def model(monkeypatch):
    counting = Counting()
    monkeypatch.setattr(index, "load_embedder", lambda _name, *, settings: counting)
    return counting


@pytest.fixture
def settings(tmp_path, model):
    return Settings(home=tmp_path / "home", models_dir=tmp_path / "models", embedder="hash")


@pytest.fixture
def at_once(monkeypatch):
    """Changes of a source are seen at once."""
    monkeypatch.setattr(catalogue, "LOOK_AGAIN_S", 0.0)
