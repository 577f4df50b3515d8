"""The session of a question: what is remembered of it is shown, and can be forgotten."""

from dataclasses import replace

import pytest

from core.domain.types import Turn
from tests.pages.test_compare import asked, finish, html, shown
from tests.runs import HOSTILE, make_run


def said(engine, session="vase"):
    return [turn.text for turn in engine.store.recall(session)]


@pytest.fixture
def talked(engine):
    """A session with two turns."""
    engine.store.remember("vase", [Turn("user", "My box arrived crushed"), Turn("assistant", "I am sorry.")])
    return engine


def enter(app, name="vase"):
    return app.text_input(key="session_name").set_value(name).run()


def test_a_question_is_remembered_only_in_a_session(visit, engine):
    app = visit(corpus="tiny")
    app.text_area(key="question").set_value("My box arrived crushed")
    app.button(key="run").click().run()
    finish(app, engine)
    assert engine.store.sessions_remembered() == ()
    app = enter(app)
    assert "This session has no turns yet" in shown(app)
    app.button(key="run").click().run()
    app = finish(app, engine)
    assert said(engine) == ["My box arrived crushed"]
    assert engine.store.load(asked(app)).settings["session"] == "vase"
    assert "My box arrived crushed" in html(app)


def test_turns_and_a_session_are_forgotten_only_when_that_is_confirmed(visit, talked):
    app = enter(visit(corpus="tiny"))
    assert "I am sorry." in html(app)
    (turns,) = [box for box in app.multiselect if box.label == "Turns to delete"]
    for chosen, kept in (([1], ["I am sorry."]), ([], [])):
        turns.set_value(chosen).run()
        assert "You cannot undo this" not in shown(app)
        (sure,) = [box for box in app.checkbox if box.label.endswith(", for good")]
        assert sure.label.startswith("Delete 1 turn" if chosen else "Delete this session")
        sure.check().run()
        assert "You cannot undo this" in shown(app)
        app.button(key="forget_now").click().run()
        assert not app.exception
        assert said(talked) == kept
        turns = next((box for box in app.multiselect if box.label == "Turns to delete"), None)
    assert "This session has no turns yet" in shown(app)


def test_a_name_that_is_not_allowed_is_told_in_one_message(visit, engine):
    app = enter(visit(corpus="tiny"), "my session!")
    assert "1 to 80 letters" in shown(app)
    app.text_area(key="question").set_value("My box")
    app.button(key="run").click().run()
    assert not app.exception
    assert "1 to 80 letters" in shown(app)
    assert engine.store.count() == 0


def test_hostile_turns_and_names_are_shown_as_text(visit, engine):
    engine.store.remember("evil", [Turn("user", text) for text in HOSTILE])
    app = enter(visit(corpus="tiny"), "evil")
    page = html(app)
    assert "&lt;img src=http://evil.example/x.png" in page
    assert not any(mark in page for mark in ("<img", "<script", "<svg", 'onmouseover="alert'))
    app = enter(app, "<b>![x](http://evil.example)")
    assert not app.exception
    assert "<b>" not in html(app)


@pytest.mark.parametrize(
    ("setting", "expected"), [("vase", "vase"), (None, ""), ({"a": 1}, ""), ("x/" * 99, None)]
)
def test_a_reopened_run_is_asked_again_in_its_session(visit, talked, setting, expected):
    run = make_run(mishaps=False, run_id="again", corpus="tiny")
    talked.store.save(replace(run, settings={**run.settings, "session": setting}))
    assert talked.store.flush()
    app = visit(run="again")
    assert not app.exception
    if expected is not None:
        assert app.text_input(key="session_name").value == expected
    assert ("I am sorry." in html(app)) is (expected == "vase")
