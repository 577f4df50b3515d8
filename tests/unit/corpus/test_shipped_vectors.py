"""The vectors that come with the program are those of its documents, as the embedder gives them."""

import numpy as np
import pytest

from core.backends import array_files
from core.backends.embedder import MINILM, load_embedder
from core.corpus import embeddings, index
from core.corpus.embeddings import KEYS, VECTORS
from core.corpus.enrichments import store
from core.domain.settings import Settings
from tests.fakes import HashEmbedder

HOW = "run: python -m scripts.vectors"


class Unasked(HashEmbedder):
    """Has the name of the default embedder; every text has to come with its vector."""

    name, dim = MINILM[0], 384

    def embed(self, texts):
        raise AssertionError(f"a text has no vector, so {HOW}: {list(texts)[:1]}")


@pytest.mark.slow
@pytest.mark.parametrize(("corpus", "enrichments"), [("support", ("headings", "children")), ("web", ())])
def test_every_built_in_text_has_its_vector(tmp_path, corpus, enrichments):
    settings = Settings(home=tmp_path, embedder=MINILM[0])
    built = index.build(corpus, corpus, settings=settings, embedder=Unasked())
    for name in enrichments:
        store.build(name, built, settings=settings, embedder=Unasked())
    assert built.info.reused == built.size


@pytest.mark.slow
def test_they_are_what_the_embedder_gives(tmp_path):
    settings = Settings(home=tmp_path, embedder=MINILM[0])
    built = index.build("web", "web", settings=settings, embedder=Unasked())
    rows = list(range(0, built.size, 9))
    from core.domain.text import searchable

    texts = [searchable(one.title, one.text) for one in built.passages(rows)]
    fresh = load_embedder(MINILM[0], settings=Settings()).embed(texts)
    assert ((fresh * built.vectors(rows)).sum(axis=1) >= 0.9999).all()


def test_vectors_of_another_embedder_are_not_taken(tmp_path):
    place = tmp_path / "one"
    place.mkdir()
    array_files.save(place / KEYS, np.arange(32, dtype=np.uint8).reshape(2, 16))
    array_files.save(place / VECTORS, np.array([[3, 4], [0, 2]], np.float16))
    _, found = embeddings.shipped_vectors("one", tmp_path)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 1.0]], atol=1e-6)
    assert len(embeddings.shipped_vectors("another", tmp_path)[0]) == 0
    assert len(embeddings.shipped_vectors("../one", tmp_path / "x")[0]) == 0
