"""From own documents to a first decision without labels: paste questions, run, see the map, grade."""

from core.engine.imported import imported
from core.evaluation import triage
from core.evaluation.labels import desk, pool
from core.store.traces_in import read
from tests.pages.reading import html, shown
from tests.unit.evaluation.test_triage import otlp, request
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


def test_imported_traces_are_replayed_and_graded_against_what_was_shown(visit, engine):
    app = visit(f"corpus.py?tab={own_questions.TAB}")
    app.segmented_control(key="own_kind").set_value(own_questions.TRAFFIC).run()
    assert "No imported traces" in shown(app)
    corpus = engine.corpus("tiny")
    (wrong, *_) = [hit.passage.id for hit in corpus.search_sparse("crushed box", 10)]
    asked = [request(n, text, [wrong]) for n, text in enumerate(QUESTIONS.split("\n"))]
    engine.store.add_runs(imported(read(otlp(*asked), "x").traces, corpus, "theirs").runs)
    app.run()
    app.button(key="own_replay").click().run()
    assert not app.exception
    job = triage.under_way(engine, "traffic tiny")
    assert job.wait(60)
    assert job.error is None
    app.run()
    assert not app.exception
    app.selectbox(key=own_questions.SET).set_value("traffic tiny").run()
    key = next(one.key for one in app.button if one.key.startswith("own_3:"))
    app.button(key=key).click().run()
    assert not app.exception
    assert "what was shown" in shown(app)
