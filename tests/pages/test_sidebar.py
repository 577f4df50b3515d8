"""The sidebar: what a corpus is, in words."""

import threading
from dataclasses import replace

import pytest

from core.corpus import catalogue
from core.corpus.chunk import Chunking
from core.corpus.manifest import CorpusInfo
from core.domain.background_job import BackgroundJob, jobs, owner
from core.domain.errors import Cancelled
from tests.pages.reading import plain, shown
from ui.app import corpora

INFO = CorpusInfo(
    "tiny", "f1", 1_200, 60_500, Chunking(), "en", "hash", "hash", 64, "flat", 1.0, "2026-11-21", {}, 9
)


def test_how_a_corpus_is_searched_is_said_in_words(visit, monkeypatch):
    many = "1,200 documents, 60,500 passages, "
    graph = replace(INFO, vector_index="hnsw", recall=0.9874)
    for info, words in (
        (INFO, f"{many}exact vector search"),
        (graph, f"{many}approximate vector search (HNSW), recall@10 0.987"),
        (None, "Not built"),
    ):
        state = "not built" if info is None else "ready"
        known = catalogue.Known("tiny", "Tiny", "folder", state, "", "memory", True, info=info)
        monkeypatch.setattr(catalogue, "known", lambda _, one=known: [one])
        monkeypatch.setattr(catalogue, "describe", lambda *_, one=known: one)
        assert plain(visit().sidebar.caption[0].value) == f"Tiny. {words}"


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


def test_a_corpus_that_is_built_is_opened_before_one_that_is_not(visit, monkeypatch):
    tiny, other = catalogue.known(None)
    monkeypatch.setattr(catalogue, "known", lambda _: [other, tiny])
    assert visit().sidebar.selectbox[0].value == "tiny"


class Held(BackgroundJob):
    """Goes on until it is stopped."""

    kind = "evaluation"

    def _do(self):
        assert self._cancel.wait(30)
        raise Cancelled("stopped")


class Finished(Held):
    """Ends when it is told to."""

    def __init__(self, *given):
        super().__init__(*given)
        self.over = threading.Event()

    def _do(self):
        assert self.over.wait(30)


class Asked(Held):
    """A question: nobody's business but who asked it."""

    kind = "question"
    private = True


@pytest.fixture
def begun(engine):
    made = []

    def begin(kind, title, session="", home=None):
        token = owner.set(session)
        made.append(kind(title, 4, home or engine.settings.home))
        owner.reset(token)
        return jobs.begin(kind, title, lambda: made[-1])

    yield begin
    for job in made:
        job.cancel()
        assert job.wait(10)


def listed(app):
    return [element.proto.text.replace("\\", "") for element in app.sidebar.get("progress")]


def test_all_that_is_under_way_is_listed_with_progress_and_stop(visit, begun):
    job = begun(Held, "nightly")
    job.finished = 1
    app = visit("help.py")
    assert listed(app)[0].startswith("Evaluation nightly: 1 of 4, about ")
    app.sidebar.button(key=f"stop:{job.id}").click().run()
    assert job.wait(10)
    assert job.state == "stopped"
    app.run()
    assert listed(app) == []
    assert not [button.key for button in app.sidebar.button if (button.key or "").startswith("stop:")]


def test_an_evaluation_that_has_ended_is_announced_with_a_link_until_dismissed(visit, begun):
    app = visit("help.py")
    job = begun(Finished, "nightly", "test session id")
    begun(Finished, "of somebody else", "another browser").over.set()
    app.run()
    assert "is finished" not in shown(app)
    job.over.set()
    assert job.wait(10)
    app.run()
    assert "Evaluation nightly is finished." in shown(app)
    (link,) = [one for one in app.main.get("page_link") if one.proto.label == "Open it"]
    assert link.proto.query_string == "evaluation=nightly"
    app.switch_page("settings.py").run()
    assert "Evaluation nightly is finished." in shown(app)
    app.button(key=f"dismiss:{job.id}").click().run()
    assert "is finished" not in shown(app)


def test_of_questions_of_others_only_their_number_is_told(visit, begun):
    begun(Asked, "a secret question", "another browser")
    app = visit("help.py")
    assert listed(app) == []
    assert "secret" not in shown(app)
    assert "1 question from other sessions" in [caption.value for caption in app.sidebar.caption]


def test_what_another_home_does_is_not_listed(visit, begun, tmp_path):
    begun(Held, "elsewhere", home=tmp_path / "elsewhere")
    assert listed(visit("help.py")) == []


def test_a_question_asked_here_is_listed_and_stopped_here(visit, engine):
    engine.fake_llm.delay = 30
    app = visit()
    app.text_area(key="question").set_value("When is it paid?")
    app.session_state["routes"] = ["hyde"]
    app.button(key="run").click().run()
    job = engine.job(app.session_state["run_id"])
    assert listed(app)[0].startswith("Question “When is it paid?”: 0 of 1, ")
    app.sidebar.button(key=f"stop:{job.id}").click().run()
    assert job.wait(10).status == "cancelled"
