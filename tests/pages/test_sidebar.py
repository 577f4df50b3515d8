"""The sidebar: what a corpus is, in words."""

from dataclasses import replace

import pytest

from core.corpus import catalogue
from core.corpus.chunk import Chunking
from core.corpus.manifest import CorpusInfo

INFO = CorpusInfo(
    "tiny", "f1", 1_200, 60_500, Chunking(), "en", "hash", "hash", 64, "flat", 1.0, "2026-11-21", {}, 9
)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (INFO, "1,200 documents, 60,500 passages, exact vector search"),
        (
            replace(INFO, vector_index="hnsw", recall=0.9874),
            "1,200 documents, 60,500 passages, approximate vector search (HNSW), recall@10 0.987",
        ),
        (None, "Not built"),
    ],
)
def test_how_a_corpus_is_searched_is_said_in_words(visit, monkeypatch, info, words):
    state = "not built" if info is None else "ready"
    known = catalogue.Known("tiny", "Tiny", "folder", state, "", "memory", True, info=info)
    monkeypatch.setattr(catalogue, "known", lambda _: [known])
    monkeypatch.setattr(catalogue, "describe", lambda *_: known)
    said = visit().sidebar.caption[0].value.replace("\\", "")
    assert said == f"Tiny. {words}"


def test_what_can_be_made_is_offered_with_its_cost_and_told_once_it_is(visit, engine, monkeypatch):
    from core.corpus import builds
    from core.enrich import store
    from ui import enrichments

    corpus = engine.corpus("tiny")
    monkeypatch.setattr(enrichments, "current_fingerprint", lambda *_, **__: corpus.fingerprint)
    store.build("children", corpus, settings=engine.settings, embedder=corpus.embedder)
    begun = []
    monkeypatch.setattr(builds, "start_enrichment", lambda *given: begun.append(given))
    app = visit()
    said = " ".join(caption.value.replace("\\", "") for caption in app.sidebar.caption)
    assert f"Made for more routes (1 of {len(store.RECIPES)})" in [e.label for e in app.sidebar.expander]
    assert "7 entries in" in said
    assert "a call of the language model a passage" in said
    assert "make:tiny:children" not in [button.key for button in app.sidebar.button]
    app.sidebar.button(key="make:tiny:questions").click().run()
    assert begun == [("tiny", "questions", engine.settings)]
