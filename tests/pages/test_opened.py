"""Whose run a page is about: the one in the address, the browser session's own, or one that is chosen."""

import pytest
from streamlit.testing.v1 import AppTest

from core.domain.program import COMMAND
from core.engine import engine as engine_module
from core.store import Store
from tests.pages.conftest import FRAME
from tests.pages.reading import address, html, shown
from ui.app.routes import on_page

pytestmark = pytest.mark.trust

PAGES = ["why.py", "steps.py", "latency.py"]


def ask(app, question):
    """Ask on Compare, and see the run to its end."""
    app.text_area(key="question").set_value(question)
    app.session_state["routes"] = ["bm25", "dense"]
    app.run()
    app.button(key="run").click().run()
    return address(app, "run")


@pytest.fixture
def asked(visit, engine):
    """A browser session that asked a question, and its run."""
    app = visit("compare.py")
    run = ask(app, "Whose is the crushed box?")
    engine.job(run).wait()
    app.run()
    return app, run


def test_a_fresh_browser_is_shown_nobodys_run_and_can_choose_one(visit, asked, stored):
    theirs, run = asked
    for page in PAGES:
        fresh = visit(page)
        assert fresh.subheader[0].value == "No run is open"
        assert "Run a question, or open a stored run. This page shows" in shown(fresh)
        assert "Whose is the crushed box?" not in html(fresh) + shown(fresh)
        assert address(fresh, "run") is None
        assert "run_id" not in fresh.session_state or fresh.session_state["run_id"] is None
        (choice,) = [box for box in fresh.selectbox if box.label == "Recent runs"]
        assert (choice.value, len(choice.options)) == (None, 4)
        choice.set_value("good").run()
        assert not fresh.exception
        assert address(fresh, "run") == "good"
        theirs.switch_page(page).run()
        assert "Whose is the crushed box?" in shown(theirs)
        assert address(theirs, "run") == run


def test_two_browsers_keep_their_own_runs(visit, asked, engine):
    first, run = asked
    second = visit("compare.py")
    own = ask(second, "What of the other vase?")
    engine.job(own).wait()
    for page in PAGES:
        first.switch_page(page).run()
        second.switch_page(page).run()
        assert address(first, "run") == run
        assert address(second, "run") == own
        assert "Whose is the crushed box?" in shown(first)
        assert "What of the other vase?" in shown(second)


def test_where_no_run_is_open_the_own_newest_is_shown(visit, asked, engine):
    app, run = asked
    other = visit("compare.py")
    engine.job(ask(other, "What of the other vase?")).wait()
    app.switch_page("compare.py")
    del app.query_params["run"]
    app.query_params["q"] = "A question that is not asked yet"
    app.run()
    assert app.session_state["run_id"] is None
    del app.query_params["q"]
    app.switch_page("why.py").run()
    assert address(app, "run") == run


def test_an_own_run_that_was_deleted_is_told(visit, asked, engine):
    app, run = asked
    engine.store.delete(run)
    engine.forget(run)
    app.switch_page("why.py").run()
    assert "was deleted" in app.error[0].value
    assert not app.exception


def test_a_store_that_is_no_database_is_one_message_with_the_way_out(tmp_path, monkeypatch):
    file = tmp_path / "routescope.sqlite"
    file.write_bytes(b"these are my notes\n" * 500)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: Store(file))
    app = AppTest.from_file(str(FRAME), default_timeout=20)
    app.switch_page("sessions.py").run()
    assert not app.exception
    assert len(app.error) == 1
    assert "is not a RouteScope session file, or is damaged" in shown(app)
    assert f"python -m core sessions recover '{file}'" in shown(app)


def test_a_store_with_a_damaged_page_is_told_on_the_page_and_the_rest_works(visit, engine, stored):
    engine.store.close()
    data = engine.store.path.read_bytes()
    engine.store.path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    for page in ("compare.py", "sessions.py", "why.py", "settings.py", "label.py", "present.py"):
        app = visit(page)
        assert not app.exception
    app = visit("sessions.py")
    assert "rescue the readable runs with: python -m core sessions recover" in shown(app)


def test_a_page_about_a_run_offers_to_ask_where_there_is_none(visit):
    for page in PAGES:
        app = visit(page)
        assert app.subheader[0].value == "No runs yet"
        assert app.main.button(key="ask_first").label == "Ask a question"


@pytest.mark.parametrize("page", ["release.py", "tune.py"])
def test_a_page_about_an_evaluation_opens_the_form_where_there_is_none(visit, page):
    app = visit(page)
    assert app.subheader[0].value == "No evaluation of tiny yet"
    assert [one.label for one in app.main.button] == ["Evaluate routes"]
    app.button(key="evaluation_first").click().run()
    assert app.session_state["evaluate_new"] is True


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (f"not built: run {COMMAND} index x --with entities (2 min)", "Corpus (2 min)"),
        (f"old. Build it again: {COMMAND} index x", "old. Build it again on the page Corpus"),
        (f"no weights: run {COMMAND} fit x, or fit them on the Tune page", "fit them on the page Tune"),
        (f"no model is here; get one with: {COMMAND} models pull default", "Settings, Models"),
    ],
)
def test_a_page_names_the_page_that_helps_in_place_of_a_command(why, said):
    told = on_page(why)
    assert told.endswith(said)
    assert COMMAND not in told
