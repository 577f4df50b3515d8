"""Label: sets, pools, the queue by its buttons, two annotators, adjudication, files out and in."""

import json
import time
from dataclasses import replace

from core.domain.errors import ModelTimedOut
from core.domain.types import Query, Turn
from core.engine.request import Request
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import pool, suggest
from core.evaluation.labels.final import final
from core.store.labels import Judgement, Pooled
from tests.pages.reading import html, shown
from tests.runs import make_run
from ui.label import sets
from ui.label.pool import SESSIONS

ASKED = (
    Question("q1", Query("How do I send a fragile item back?"), answers=("Double boxed.",)),
    Question("q2", Query("When is it paid?", (Turn("user", "I want a refund."),)), split="dev"),
)


def press(app, name):
    """Press the button of the passage that is shown: "grade_2", "cannot", "later", "undo", ..."""
    keys = (f"label_{name}", f"label_{name}:")
    (found,) = [one for one in app.button if one.key == keys[0] or (one.key or "").startswith(keys[1])]
    found.click().run()
    assert not app.exception, app.exception
    return app


def at(app):
    """The question and passage that the address names."""
    given = [app.query_params[name] for name in ("question", "passage")]
    return tuple(one if isinstance(one, str) else one[0] for one in given)


def begun(engine, name="one", questions=ASKED):
    """A set with the whole corpus in the pool of each question."""
    desks.create(engine.store, name, "tiny", questions)
    corpus = engine.corpus("tiny")
    found = {
        q.id: [Pooled(p, (("bm25", n), ("dense", n + 1))) for n, p in enumerate(corpus.all, 1)]
        for q in questions
    }
    desks.add_to_pool(engine.store, name, found)
    return found


def judged(engine, who, grades, name="one"):
    """Judgements of somebody else, in another process."""
    said = [Judgement(q, p, who, "person", "grade", g) for (q, p), g in grades.items()]
    desks.judge_all(engine.store, name, said)


def stored(engine, name="one"):
    return desks.load(engine.store, name)


# Sets.


def test_without_a_set_it_says_what_one_is_for_and_what_to_do_first(visit):
    app = visit("label.py")
    assert app.subheader[0].value == "No labelled set of tiny yet"
    assert "records which passages answer which question" in shown(app)
    assert app.button(key="label_make").disabled


def test_a_set_is_made_of_what_was_asked_in_stored_sessions(visit, engine):
    first = make_run(mishaps=False, run_id="a", corpus="tiny")
    again = replace(first, id="b")
    other = replace(first, id="c", query=Query("When is it paid?"))
    for run in (first, again, other):
        engine.store.save(run)
    assert engine.store.flush()
    app = visit("label.py")
    app.radio(key="label_origin").set_value(sets.ASKED).run()
    app.text_input(key="label_name").set_value("  from  sessions ").run()
    app.button(key="label_make").click().run()
    made = stored(engine, "from sessions")
    assert {q.query for q in made.questions} == {first.query, other.query}
    assert made.set.corpus == "tiny"
    assert app.selectbox(key="label_set").value == "from sessions"
    assert app.subheader[0].value == "No passages to judge yet"


def test_a_file_of_another_tool_is_previewed_and_its_labels_are_taken_over(visit, engine):
    passage = engine.corpus("tiny").all[0]
    row = {"Frage": "Why?", "Kontext": passage.text, "Notiz": "x"}
    app = visit("label.py")
    app.radio(key="label_origin").set_value(sets.FILE).run()
    uploader = app.file_uploader(key="label_file")
    uploader.set_value(("q.jsonl", b'{"id": "a", "text": "Why?"}\nnonsense\n', "text/plain")).run()
    assert "q.jsonl line 2: not valid JSON" in shown(app)
    app.file_uploader(key="label_file").set_value(("q.json", json.dumps([row]).encode(), "text/plain")).run()
    assert "--columns" in shown(app)
    app.selectbox(key="label_column_question").set_value("Frage").run()
    app.selectbox(key="label_column_relevant").set_value("Kontext").run()
    assert "Columns not used: Notiz" in shown(app)
    assert app.dataframe[1].value["Question"].tolist() == ["Why?"]
    app.text_input(key="label_name").set_value("theirs").run()
    app.button(key="label_make").click().run()
    assert not app.exception
    (judgement,) = stored(engine, "theirs").current
    assert (judgement.passage, judgement.annotator, judgement.grade) == (passage.id, "imported", 3)


def test_a_set_is_deleted_and_brought_back(visit, engine):
    begun(engine)
    app = visit("label.py", set="one", tab="Set")
    app.button(key="label_delete").click().run()
    assert desks.sets(engine.store) == ()
    assert "was deleted. Its judgements remain stored" in shown(app)
    app.button(key="label_undelete").click().run()
    assert [one.name for one in desks.sets(engine.store)] == ["one"]
    assert not app.exception
    assert app.selectbox(key="label_set").value == "one"


def test_guidelines_are_saved_on_the_button_and_shown_beside_the_queue(visit, engine):
    begun(engine)
    app = visit("label.py", set="one", tab="Set")
    app.text_area(key="label_guide:one").set_value("A price is <b>not</b> an answer.").run()
    assert "price" not in stored(engine).set.guidelines
    app.button(key="label_guide:one:save").click().run()
    assert stored(engine).set.guidelines == "A price is <b>not</b> an answer."
    assert "A price is &lt;b&gt;not&lt;/b&gt; an answer." in html(visit("label.py", set="one"))


# The pool.


def test_routes_fill_the_pool_in_the_background(visit, engine):
    desks.create(engine.store, "one", "tiny", ASKED)
    app = visit("label.py", set="one")
    assert app.subheader[0].value == "No passages to judge yet"
    app.multiselect(key="label_routes:one").set_value(["bm25", "dense"]).run()
    app.number_input(key="label_depth").set_value(3).run()
    app.button(key="label_pool_begin").click().run()
    pooling = pool.under_way(engine, "one")
    assert pooling.wait(20)
    until = time.time() + 20
    while not any((b.key or "").startswith("label_grade_0") for b in app.button) and time.time() < until:
        app.run()
    found = stored(engine).pool
    assert all(3 <= len(passages) <= 6 for passages in found.values())
    app = visit("label.py", set="one", tab="Pool")
    total = sum(map(len, found.values()))
    assert f"{total} passages to judge" in shown(app)
    assert "passages to judge." in shown(app)
    assert "2 of 2 questions run" in shown(app)


def test_what_stored_sessions_found_is_taken_over_without_asking_again(visit, engine):
    desks.create(engine.store, "one", "tiny", ASKED)
    app = visit("label.py", set="one", tab="Pool")
    assert not [one for one in app.selectbox if one.key == "label_pool_from"]  # there is nothing to take
    asked = [
        Request(Query(ASKED[0].query.text), "tiny", ("bm25", "dense")),
        Request(Query(ASKED[1].query.text), "tiny", ("bm25",)),
    ]
    runs = [engine.ask(one) for one in asked]
    app = visit("label.py", set="one", tab="Pool")
    app.selectbox(key="label_pool_from").set_value(SESSIONS).run()
    app.button(key="label_pool_take").click().run()
    assert "new passages for 1 questions of the set" in shown(app)
    assert "1 runs were skipped because their conversation history differs" in shown(app)
    found = stored(engine).pool
    assert set(found["q1"]) == {hit.passage.id for one in runs[0].results for hit in one.hits[:10]}
    assert not found.get("q2")


# The queue.


def test_the_queue_is_blind_until_it_is_asked_who_found_a_passage(visit, engine):
    begun(engine)
    app = visit("label.py", set="one")
    assert "Found by" not in html(app)
    assert "BM25" not in html(app)
    app.toggle(key="label_routes").set_value(True).run()
    assert "Found by 2 routes" in html(app)
    assert app.query_params["routes"] in ("1", ["1"])


def test_undo_takes_the_last_one_back_and_goes_there(visit, engine):
    begun(engine)
    app = visit("label.py", set="one")
    first = at(app)
    press(app, "grade_3")
    assert stored(engine).by("me")[first].grade == 3
    assert ": 3 " in html(app).split("rs-label-saved")[1]
    assert "Question 1 of 2: 1 of 7 passages judged" in html(app)
    second = at(app)
    press(app, "cannot")
    press(app, "undo")
    assert at(app) == second
    assert stored(engine).by("me").keys() == {first}
    press(app, "undo")
    assert at(app) == first
    assert stored(engine).by("me") == {}
    press(app, "undo")
    assert "Nothing to undo" in html(app)
    assert [one.kind for one in stored(engine).judgements] == ["grade", "cannot", "withdrawn", "withdrawn"]


def test_cannot_tell_keeps_its_note_and_later_comes_again_at_the_end(visit, engine):
    begun(engine, questions=ASKED[:1])
    app = visit("label.py", set="one")
    doubted = at(app)
    (note,) = [one for one in app.text_input if (one.key or "").startswith("label_note:")]
    note.set_value("Half a sentence is missing.").run()
    press(app, "cannot")
    assert stored(engine).by("me")[doubted].note == "Half a sentence is missing."
    put_off = at(app)
    press(app, "later")
    for _ in range(5):
        assert at(app) not in (doubted, put_off)
        press(app, "grade_1")
    assert at(app) == put_off
    press(app, "grade_2")
    assert app.subheader[0].value == "Every passage is judged"
    press(app, "undo")
    assert at(app) == put_off
    assert stored(engine).by("me")[put_off].kind == "later"


def test_back_forward_and_a_jump_go_where_they_say(visit, engine):
    begun(engine)
    app = visit("label.py", set="one")
    first = at(app)
    press(app, "grade_2")
    second = at(app)
    press(app, "back")
    assert at(app) == first
    (given,) = [one for one in app.button if (one.key or "").startswith("label_grade_2")]
    assert given.proto.type == "primary"
    press(app, "on")
    assert at(app) == second
    app.selectbox(key="label_jump").set_value("q2").run()
    assert at(app)[0] == "q2"
    assert "I want a refund." in html(app)
    press(app, "next")
    assert at(app)[0] == "q2"


def test_a_link_opens_the_very_passage(visit, engine):
    begun(engine)
    app = visit("label.py", set="one", question="q2", passage="customs:0-80", annotator="anna")
    assert at(app) == ("q2", "customs:0-80")
    assert app.text_input(key="label_annotator").value == "anna"
    press(app, "grade_1")
    assert stored(engine).by("anna")["q2", "customs:0-80"].grade == 1
    assert not visit("label.py", set="one", question="q9", passage="nowhere").exception


def test_what_others_judge_meanwhile_is_not_lost_and_is_seen(visit, engine):
    begun(engine)
    app = visit("label.py", set="one")
    mine = at(app)
    judged(engine, "ben", {mine: 0})
    judged(engine, "me", {("q1", p): 1 for p in stored(engine).pool["q1"] if ("q1", p) != mine})
    press(app, "grade_3")  # the same person, in a second window, has judged the rest of the question
    assert at(app)[0] == "q2"
    now = stored(engine)
    assert now.by("me")[mine].grade == 3
    assert now.by("ben")[mine].grade == 0
    assert len(now.by("me")) == 7


def test_a_set_that_somebody_deletes_is_said_to_be_gone_and_nothing_is_saved(visit, engine):
    begun(engine)
    app = visit("label.py", set="one")
    desks.set_deleted(engine.store, "one", True)
    press(app, "grade_3")
    assert "deleted" in shown(app)
    desks.set_deleted(engine.store, "one", False)
    assert stored(engine).judgements == ()


# Suggestions.


def test_a_suggestion_is_shown_on_demand_alone_and_is_never_chosen(visit, engine):
    begun(engine, questions=ASKED[:1])
    for passage in stored(engine).pool["q1"]:
        said = Judgement("q1", passage, "model:tiny", "model", "grade", 3, "P(Yes) 0.91")
        desks.judge(engine.store, "one", said)
    app = visit("label.py", set="one")
    assert "Suggested" not in html(app)
    app.toggle(key="label_suggest").set_value(True).run()
    assert "Suggested by the model tiny" in html(app)
    buttons = [one for one in app.button if (one.key or "").startswith("label_grade_")]
    assert [one.proto.type for one in buttons] == ["secondary"] * 4
    assert stored(engine).by("me") == {}
    press(app, "grade_3")
    press(app, "grade_1")
    again = visit("label.py", set="one", tab="Agreement")
    assert "model:tiny and me both graded 2 passages and agree on 50%" in html(again)


def test_the_model_is_asked_in_the_background_and_what_fails_is_counted(visit, engine):
    begun(engine, questions=ASKED[:1])
    judged(engine, "anna", {("q1", "fragile:0-80"): 3, ("q1", "keys:0-80"): 0})
    engine.fake_llm.replies = {"grade": "0.9"}
    app = visit("label.py", set="one", tab="Agreement")
    app.button(key="label_suggest_judged").click().run()
    assert suggest.under_way(engine, "one").wait(20)
    app.run()
    assert "model:scripted suggested grades for 2 of 2 passages" in shown(app)
    assert "model:scripted and anna both graded 2 passages and agree on 50%" in html(app)
    assert app.button(key="label_suggest_judged").disabled
    engine.fake_llm.replies = {"grade": ModelTimedOut("no answer within 9 s")}
    app.button(key="label_suggest_all").click().run()
    assert suggest.under_way(engine, "one").wait(20)
    app.run()
    assert "suggested grades for 0 of 5 passages" in shown(app)
    assert "5 have none" in shown(app)
    assert "no answer within 9 s" in shown(app)
    assert set(stored(engine).annotators()) == {"anna"}


# Agreement.


def test_two_annotators_are_compared_and_their_disagreements_settled(visit, engine):
    found = begun(engine, questions=ASKED[:1])
    ids = [one.passage.id for one in found["q1"]]
    anna = dict(zip([("q1", id) for id in ids], (3, 3, 2, 1, 0, 0, 0), strict=True))
    ben = {**anna, ("q1", ids[0]): 0, ("q1", ids[2]): 3}
    judged(engine, "anna", anna)
    assert "One annotator so far" in [
        s.value for s in visit("label.py", set="one", tab="Agreement").subheader
    ]
    judged(engine, "ben", ben)
    app = visit("label.py", set="one", tab="Agreement")
    # 5 of 7 the same; by chance (3*2 + 1*1 + 0*1... ) of grades 0: 3*4, 1: 1*1, 2: 1*0, 3: 2*2 of 49
    kappa = (5 / 7 - 17 / 49) / (1 - 17 / 49)
    assert f"Cohen&#39;s kappa is {kappa:.2f}, moderate by the bands of Landis and Koch" in html(app)
    assert "2 of them are open" in shown(app)
    assert at(app) == ("q1", ids[0])  # three grades apart goes first
    press(app, "settle_3")
    assert at(app) == ("q1", ids[2])
    counted = final(stored(engine))
    assert (counted["q1", ids[0]].grade, counted["q1", ids[0]].how) == (3, "adjudicated")
    assert (counted["q1", ids[2]].grade, counted["q1", ids[2]].how) == (2, "median")
    assert stored(engine).by("anna")["q1", ids[0]].grade == 3
    press(app, "settle_on")
    assert "adjudicated" in html(app)
    press(app, "settle_undo")
    assert final(stored(engine))["q1", ids[0]].how == "median"


# Labels, out and in.


def test_labels_say_how_they_came_about(visit, engine):
    found = begun(engine)
    ids = [one.passage.id for one in found["q1"]]
    judged(engine, "anna", {("q1", ids[0]): 3, ("q1", ids[1]): 1})
    judged(engine, "ben", {("q1", ids[0]): 3})
    app = visit("label.py", set="one", tab="Labels")
    told = shown(app)
    assert "2 of 14 passages have a label, 1 by one person, 1 by several people who agree." in told
    assert "Questions without a judgement: 1." in told
    table = app.dataframe[0].value
    assert list(table["Grade"][:2]) == ["3 answers", "1 background"]
    app.selectbox(key="label_shown").set_value("unjudged").run()
    assert len(app.dataframe[0].value) == 12
    assert app.query_params["show"] in ("unjudged", ["unjudged"])


def test_a_file_is_imported_on_the_page(visit, engine):
    begun(engine)
    app = visit("label.py", set="one", tab="Labels")
    app.session_state["label_import"] = True
    app.run()
    app.file_uploader(key="label_import_file:0").set_value(
        ("x.qrels", b"q1 0 fragile:0-80 9\n", "text/plain")
    ).run()
    app.button(key="label_import_go").click().run()
    assert "Not done: x.qrels line 1" in shown(app)
    assert stored(engine).judgements == ()
    app.file_uploader(key="label_import_file:1").set_value(
        ("x.qrels", b"q1 0 fragile:0-80 2\n", "text/plain")
    ).run()
    app.button(key="label_import_go").click().run()
    assert "1 judgements imported from x.qrels" in shown(app)
    assert stored(engine).by("imported")["q1", "fragile:0-80"].grade == 2


def test_sets_of_other_corpora_are_offered_only_on_request_and_marked(visit, engine):
    desks.create(engine.store, "theirs", "other", ASKED)
    app = visit("label.py")
    assert app.subheader[0].value == "No labelled set of tiny yet"
    assert "Labelled set" not in [one.label for one in app.selectbox]
    app.checkbox(key="label_others").check().run()
    assert not app.exception
    assert app.selectbox(key="label_set").options == ["theirs · corpus other"]
    begun(engine)
    app = visit("label.py")
    assert app.selectbox(key="label_set").options == ["one"]
    linked = visit("label.py", set="theirs")
    assert linked.selectbox(key="label_set").value == "theirs"
    assert linked.selectbox(key="label_set").options == ["one", "theirs · corpus other"]
