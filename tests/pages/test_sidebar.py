"""The sidebar: what a corpus is, in words."""

import threading
from dataclasses import replace

import pytest

from core.corpus import builds, catalogue
from core.corpus.chunk import Chunking
from core.corpus.manifest import CorpusInfo
from core.errors import Cancelled
from tests.pages.reading import plain
from ui import corpora

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
    said = plain(visit().sidebar.caption[0].value)
    assert said == f"Tiny. {words}"


def test_the_sidebar_is_short(visit):
    app = visit()
    assert [box.label for box in app.sidebar.selectbox] == ["Corpus"]
    assert [field.label for field in app.sidebar.text_input] == []
    assert "Add a corpus" not in [expander.label for expander in app.sidebar.expander]


def test_progress_of_a_build_is_there_with_stop(visit):
    stop = threading.Event()

    def work(progress, cancel):
        progress("embed", 3, 10)
        while not stop.wait(0.01):
            if cancel.is_set():
                raise Cancelled("stopped")

    build = builds.start_work("tiny under way", work)
    try:
        app = visit()
        app.sidebar.button(key="stop:tiny under way").click().run()
        build.wait(5)
        assert build.stopped
    finally:
        stop.set()


def test_a_corpus_that_was_added_is_chosen_when_it_is_there(visit):
    app = visit()
    assert app.sidebar.selectbox[0].value == "tiny"
    app.session_state[corpora.WANTED] = "not there yet"
    app.run()
    assert app.sidebar.selectbox[0].value == "tiny"
    app.session_state[corpora.WANTED] = "other"
    app.run()
    assert app.sidebar.selectbox[0].value == "other"
    assert corpora.WANTED not in app.session_state
