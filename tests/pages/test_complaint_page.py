"""“Wrong…” on Compare and Why: two clicks to a test, its undo, and what cannot be saved."""

import pytest

from core.domain.types import Query
from core.evaluation.dataset import Question
from core.evaluation.gold import Gold
from core.evaluation.labels import desk as desks
from tests.pages.reading import shown

NAME = "regressions tiny"


def opened(app, key):
    app.session_state[f"{key}_box"] = True
    return app.run()


def save(app, key):
    if not app.session_state[f"{key}_box"]:
        opened(app, key)
    return next(one for one in app.button if one.key == f"{key}_save")


@pytest.mark.parametrize(
    ("page", "key", "view"),
    [("compare.py", "wrong_ranking", {"run": "good"}), ("why.py", "wrong_here", {"run": "good"})],
)
def test_saving_as_it_is_makes_a_labelled_question(visit, stored, engine, page, key, view):
    app = visit(page, **view)
    save(app, key).click().run()
    assert not app.exception
    assert f"Saved: the question is a new test in {NAME}." in shown(app)
    (question,) = desks.load(engine.store, NAME).questions
    assert question.query == stored["good"].query
    (one,) = question.complaints
    assert (one.who, one.run, one.route) == ("me", "good", stored["good"].results[0].route)
    next(one for one in app.button if one.key == f"{key}_undo").click().run()
    assert f"Taken back from {NAME}." in shown(app)
    assert desks.sets(engine.store) == ()


def test_the_passage_looked_at_on_why_is_the_one_that_should_have_been_there(visit, stored, engine):
    passage = stored["good"].results[0].hits[15].passage.id
    app = visit("why.py", run="good", passage=passage)
    save(app, "wrong_here").click().run()
    (question,) = desks.load(engine.store, NAME).questions
    assert question.complaints[0].passage == passage
    assert question.complaints[0].failure == "ranked too low"
    assert desks.load(engine.store, NAME).by("me")[question.id, passage].grade == 3


def test_what_cannot_be_saved_is_said_and_what_was_typed_stays(visit, stored, engine):
    desks.create(engine.store, "taken", "elsewhere", [Question("q", Query("one"))])
    app = opened(visit("why.py", run="good"), "wrong_here")
    field = {one.key.rpartition(":")[2]: one for one in app.text_input if one.key.startswith("wrong_here:")}
    field["answer"].set_value("42 days")
    field["set"].set_value("taken")
    save(app, "wrong_here").click().run()
    assert "Not done: label set 'taken' is over corpus elsewhere" in shown(app)
    values = {one.key.rpartition(":")[2]: one.value for one in app.text_input}
    assert (values["answer"], values["set"]) == ("42 days", "taken")


def test_a_session_deleted_meanwhile_is_said(visit, stored, engine):
    app = opened(visit("why.py", run="good"), "wrong_here")
    engine.store.delete("good")
    save(app, "wrong_here").click().run()
    assert not app.exception
    assert "deleted" in shown(app)
    assert desks.sets(engine.store) == ()


def test_a_passage_is_found_by_words_a_document_or_an_id(visit, stored, engine):
    app = opened(visit("compare.py", run="good"), "wrong_ranking")
    passage = engine.corpus("tiny").passages([0])[0]
    for words in (passage.id, passage.text.split(".")[0], passage.doc_id):
        find = next(one for one in app.text_input if one.key == "wrong_ranking:good:find")
        find.set_value(words).run()
        chosen = next(one for one in app.selectbox if one.key.startswith("wrong_ranking:good:passage"))
        assert chosen.value == passage.id or words == passage.doc_id
    save(app, "wrong_ranking").click().run()
    (question,) = desks.load(engine.store, NAME).questions
    assert question.complaints[0].passage


def test_a_labelled_passage_is_offered_and_the_route_that_does_not_show_it(
    visit, stored, engine, monkeypatch
):
    run = stored["good"]
    shown_by = {result.route: [hit.passage.id for hit in result.hits[:10]] for result in run.results}
    wanted = next(
        id for ids in shown_by.values() for id in ids if not all(id in other for other in shown_by.values())
    )
    monkeypatch.setattr("ui.components.gold.gold_of", lambda _: Gold({wanted: 3}))
    app = visit("why.py", run="good")
    save(app, "wrong_here").click().run()
    (question,) = desks.load(engine.store, NAME).questions
    (one,) = question.complaints
    assert one.passage == wanted
    assert wanted not in shown_by[one.route]
    assert "no passage and no answer" not in shown(app)
