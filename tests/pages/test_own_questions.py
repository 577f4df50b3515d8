"""From own documents to a first decision without labels: paste questions, run, see the map, grade."""

from core.evaluation.labels import desk, pool
from tests.pages.reading import html, shown
from ui.corpus import own_questions

QUESTIONS = "Who reports a crushed box?\nHow long are idempotency keys stored?\nWho reports a crushed box?"


def test_pasted_questions_run_and_ten_passages_decide(visit, engine):
    app = visit(f"corpus.py?tab={own_questions.TAB}")
    app.text_area(key="own_pasted").set_value(QUESTIONS).run()
    app.button(key="own_begin").click().run()
    assert not app.exception
    (made,) = desk.sets(engine.store)
    job = pool.under_way(engine, made.name)
    assert job.wait(60)
    assert len(desk.load(engine.store, made.name).questions) == 2, "each once"
    app.run()
    assert not app.exception
    assert "groups that show nearly the same passages" in shown(app)
    assert "without a grade, nothing shows" in shown(app)
    buttons = [one for one in app.button if one.key.startswith("own_3:")]
    assert 0 < len(buttons) <= own_questions.TO_GRADE
    key = buttons[0].key
    app.button(key=key).click().run()
    assert not app.exception
    assert "Not enough evidence" in shown(app)
    (grade,) = desk.load(engine.store, made.name).current
    assert (grade.grade, f"own_3:{grade.question}:{grade.passage}") == (3, key)
    app.button(key="own_undo").click().run()
    assert desk.load(engine.store, made.name).current == ()
    assert "<script" not in html(app)
