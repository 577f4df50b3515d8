"""Label, tab Generated questions: what makes them, and their review by buttons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.domain.types import Query
from core.evaluation.dataset import Generated, Question
from core.evaluation.labels import desk as desks
from core.evaluation.questions import label_set
from tests.pages.reading import html
from tests.runs import HOSTILE

MADE = tuple(
    Question(
        f"g-{n}",
        Query(f"When is refund number {n} paid?"),
        mode="plain",
        answer="in five days",
        answerable=True,
        generated=Generated("scripted", passages=("returns:0-90",), checks={"easy": n == 2, "P(yes)": 0.9}),
    )
    for n in range(1, 4)
)


@pytest.fixture
def opened(engine, view):
    """The tab over a set of three generated questions."""
    desks.create(engine.store, "made", "tiny", MADE)
    return lambda **params: view("label.py", "Generated questions", set="made", **params)


def state(engine):
    return [one.generated.state for one in label_set.questions(engine.store, "made")]


def press(app, key):
    app.button(key=key).click().run()
    assert not app.exception, app.exception
    return app


def test_questions_are_accepted_changed_dropped_and_put_back(engine, opened):
    app = opened()
    assert "When is refund number 1 paid?" in html(app)
    press(app, "generated_accept")
    assert "When is refund number 2 paid?" in html(app)
    assert "easy" in html(app)
    app.text_input(key="generated_text:g-2").set_value("Until when do I get my money?")
    press(app, "generated_accept")
    press(app, "generated_drop")
    assert state(engine) == ["accepted", "accepted", "dropped"]
    asked = desks.load(engine.store, "made").asked
    assert asked["g-2"].query.text == "Until when do I get my money?"
    assert "g-3" not in asked
    assert "Nothing is left here to review" in app.success[0].value
    press(app, "generated_undo")
    assert state(engine) == ["accepted", "accepted", "proposed"]


def test_who_was_quicker_is_told_and_nothing_is_overwritten(engine, opened):
    app = opened()
    seen = label_set.questions(engine.store, "made")[0]
    label_set.decide(engine.store, "made", seen, "dropped", "Bo")
    press(app, "generated_accept")
    assert "Bo has changed this question meanwhile" in app.error[0].value
    assert state(engine)[0] == "dropped"


def test_an_empty_set_says_what_to_do(engine, view):
    desks.create(engine.store, "plain", "tiny", [Question("q", Query("When?"))])
    app = view("label.py", "Generated questions", set="plain")
    assert app.button(key="generated_write")


def test_a_link_opens_one_and_what_a_model_wrote_is_text(engine, view):
    hostile = replace(MADE[0], id="g-9", query=Query(HOSTILE[0]), answer=HOSTILE[2])
    desks.create(engine.store, "made", "tiny", (*MADE, hostile))
    app = view("label.py", "Generated questions", set="made", generated="g-9")
    assert "4 of 4" in html(app)
    assert HOSTILE[0] not in html(app), "it is escaped"
    assert HOSTILE[2] not in html(app)
