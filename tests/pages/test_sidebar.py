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
