"""Pages about a corpus that is being opened say so, and go on when it is; other pages are as ever."""

from concurrent.futures import Future

import pytest

from tests.pages.reading import shown
from ui.app import opening

SAID = "Opening corpus tiny"


@pytest.fixture
def held(engine, monkeypatch):
    """The corpus is opened when the test says so."""
    opened = Future()
    monkeypatch.setattr(engine, "opening", lambda _: opened)
    monkeypatch.setattr(opening, "PATIENCE_S", 0.0)
    return opened


def test_a_page_that_looks_into_it_waits_for_it_and_goes_on(visit, engine, stored, held):
    app = visit("why.py", run="good")
    assert SAID in shown(app)
    before = len(shown(app))
    held.set_result(engine.corpus("tiny"))
    app.run()
    assert not app.exception, app.exception
    assert SAID not in shown(app)
    assert len(shown(app)) > before


def test_pages_that_need_no_corpus_do_not_wait(visit, stored, held):
    for page in ("compare.py", "sessions.py", "settings.py", "help.py"):
        assert SAID not in shown(visit(page, run="good"))


def test_a_question_is_asked_and_followed_meanwhile(visit, engine, held):
    app = visit(corpus="tiny")
    app.text_area(key="question").set_value("When is it paid?").run()
    app.button(key="run").click().run()
    assert not app.exception, app.exception
    job = engine.job(app.session_state["run_id"])
    assert not job.done
    assert app.button(key="stop")
    held.set_result(engine.corpus("tiny"))
    assert {one.status for one in job.wait(30).results} <= {"ok", "unavailable", "failed"}


def test_one_that_cannot_be_opened_is_told_as_ever(visit, engine, stored, held):
    from core.domain.errors import Unavailable

    held.set_exception(Unavailable("corpus tiny is not built"))
    app = visit("why.py", run="good")
    assert SAID not in shown(app)
