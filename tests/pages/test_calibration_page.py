"""Calibration: thresholds of an evaluation chosen, shown and saved; named settings in Compare."""

import json
import time
from dataclasses import replace

import pytest

from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain.types import Query
from core.evaluation import experiment_store, sets
from core.evaluation.calibration import choose
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.tuning.calibrate import calibrate, in_words
from core.evaluation.tuning.sweep_split import split
from core.evaluation.tuning.threshold_cases import found
from core.store import presets
from core.store.presets import Preset
from tests.calibrated import asked, crag, kept, result
from tests.pages.reading import address, html, shown
from tests.runs import HOSTILE


@pytest.fixture
def write(engine, once):
    """Keep an evaluation: `write(name, labelled, of)`; at question n one route did `of(n)`."""

    def keep(name, labelled, of):
        results = {q.id: [of(n)] for n, q in enumerate(labelled.questions)}
        folder = experiment_store.place(engine.settings, name)
        once(folder, repr((labelled, results)), lambda made: kept(made, labelled, results))

    return keep


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(sets, "read", lambda *_, **__: asked(40))


@pytest.fixture
def evaluation(engine, write):
    """40 questions, half of them dev, at which one route graded and asked for evidence."""
    write("made", asked(40), crag)
    return experiment_store.opened(experiment_store.place(engine.settings, "made"))


def target(step="grade and decide:high:question"):
    got = found([(f"q{n}", crag(n)) for n in range(40)], asked(40))
    return next(one for one in got.targets if one.key == step)


def test_the_finding_is_told_first_and_equals_the_calibration(visit, evaluation):
    app = visit("tune.py")
    expected = calibrate(target(), split(asked(40)), "f1")
    assert in_words(expected).split(". ")[0] in html(app)
    assert f"{expected.threshold:.3g} has the highest F1 on 20 dev questions." in html(app)
    assert "From this threshold on, the route trusts the results" in html(app)
    dev = [case for case in target().cases if int(case.question[1:]) % 2 == 0]
    assert expected.threshold == choose([case.score for case in dev], [case.positive for case in dev])
    names = [one["name"] for one in json.loads(app.main.get("plotly_chart")[0].proto.spec)["data"]]
    assert names == ["precision, dev", "recall, dev", "precision, held out", "recall, held out"]
    assert "are not meant as probabilities" in shown(app)


def test_choices_are_in_the_address_and_come_back(visit, evaluation):
    app = visit("tune.py")
    app.selectbox(key="cal_step").set_value("is the answer in the passages:threshold:question").run()
    app.session_state["cal_objective"] = "recall"
    app.run()
    app.number_input(key="cal_wanted").set_value(0.8).run()
    assert "with recall of at least 0.8" in html(app)
    assert (address(app, "objective"), address(app, "wanted")) == ("recall", "0.8")
    names = ("evaluation", "route", "step", "objective", "wanted")
    again = visit("tune.py", **{name: address(app, name) for name in names if address(app, name)})
    assert html(again) == html(app)
    assert "expected calibration error" in shown(again)
    assert len(again.main.get("plotly_chart")) == 2


def test_addresses_that_cannot_be_are_passed_over(visit, evaluation):
    app = visit("tune.py", route="nobody", step="none", objective="x", wanted="7", evaluation="gone")
    assert "has the highest F1" in html(app)


def test_a_threshold_is_saved_with_words_of_what_changes_and_undone(visit, engine, evaluation):
    app = visit("tune.py")
    threshold = calibrate(target(), split(asked(40)), "f1").threshold
    assert f"New preset: crag.high: not set → {threshold:.4g}." in shown(app)
    app.text_input(key="cal_name").set_value("for tiny").run()
    app.button(key="cal_save").click().run()
    assert "Saved as “for tiny”" in shown(app)
    first = presets.named(engine.store, "for tiny")
    assert first.parameters == {"crag": {"high": threshold}}
    assert first.note.startswith(f"crag.high: {threshold:.3g} has the highest F1 on 20 dev questions")
    assert "This preset already has this value." in shown(app)
    assert app.button(key="cal_save").disabled
    app.selectbox(key="cal_step").set_value("is the answer in the passages:threshold:question").run()
    assert "Changes in “for tiny”: answer_evidence: not set" in shown(app)
    assert "all routes" in shown(app)
    app.button(key="cal_save").click().run()
    second = presets.named(engine.store, "for tiny")
    assert (second.parameters, second.evidence is None) == (first.parameters, False)
    app.button(key="cal_undo_save").click().run()
    assert replace(presets.named(engine.store, "for tiny"), changed="") == replace(first, changed="")


def test_an_evaluation_under_way_calls_no_question_a_failure(visit, engine):
    labelled = asked(40)
    results = {question.id: [crag(n)] for n, question in enumerate(labelled.questions[:30])}
    kept(experiment_store.place(engine.settings, "begun"), labelled, results)
    page = visit("tune.py")
    assert "30 of 40 questions have been asked so far" in shown(page)
    assert "10 questions: the route failed" not in shown(page) + html(page)


def test_questions_of_one_split_are_cut_in_halves_and_it_is_said(visit, write):
    write("tests", asked(40, ("test",)), crag)
    app = visit("tune.py")
    assert "questions of one half" not in html(app)  # a test split is left alone unless told otherwise
    app.checkbox(key="tune_on_test").check().run()
    assert "on 20 questions of one half" in html(app)
    assert "split into two halves with a fixed seed" in html(app)


def test_an_evaluation_without_thresholds_says_what_to_measure(visit, monkeypatch, write):
    monkeypatch.setattr("core.evaluation.tuning.threshold_cases.batch_runnable", list)
    write("plain", asked(4), lambda n: result("bm25"))
    app = visit("tune.py")
    assert "No threshold in this evaluation" in shown(app)
    app.button(key="cal_evaluate").click().run()
    assert "crag" in app.session_state["ev_routes"]


def test_a_route_that_asks_no_model_can_be_asked_now(visit, monkeypatch, write):
    asking = (Question("q1", Query("My box arrived crushed"), split="dev"),)
    labels = LabelledSet("tiny", asking, {"q1": {"crushed:0-80": 2}}, 2)
    monkeypatch.setattr(sets, "read", lambda *_, **__: labels)
    write("plain", asked(4), lambda n: result("bm25"))
    app = visit("tune.py", route="compress")
    assert "You can run the route now on all labelled questions of tiny" in shown(app)
    app.button(key="cal_survey:compress").click().run()
    until = time.time() + 20
    while "Threshold" not in [one.label for one in app.selectbox] and time.time() < until:
        time.sleep(0.1)
        app.run()
    assert app.selectbox(key="cal_step").value == "drop passages far from the question:floor:passage"
    assert "at least 5 are needed" in shown(app)


def test_hostile_text_is_shown_as_text(visit, engine, evaluation, write):
    def evil(n):
        made = crag(n, "crag")
        spans = tuple(replace(span, name=f"{span.name} {HOSTILE[0]}") for span in made.spans)
        return replace(made, spans=spans)

    write("evil", asked(40), evil)
    presets.save(engine.store, Preset(HOSTILE[1][:60], "tiny", {"crag": {"high": 0.4}}, None, HOSTILE[0]))
    app = visit("tune.py", evaluation="evil")
    for mark in ("<img", "<script", "<svg"):
        assert mark not in html(app)
        assert mark not in "".join(one.proto.spec for one in app.main.get("plotly_chart"))
    app = visit()
    assert "<script" not in html(app)


@pytest.fixture
def preset(engine):
    made = Preset(
        "for tiny", "tiny", {"crag": {"high": 0.4}, "hybrid_rrf": {"k": 60}}, 0.3, "chosen on dev\nyes"
    )
    presets.save(engine.store, made)
    return made


def test_named_settings_are_put_in_place_used_and_undone(visit, engine, preset, monkeypatch):
    app = visit()
    app.session_state["routes"] = ["bm25"]
    app.session_state["parameters"] = {"dense": {}}
    app.run()
    page = html(app)
    assert "crag.high = 0.4, hybrid_rrf.k = 60, answer_evidence = 0.3" in page
    assert "chosen on dev" in page
    app.button(key="named_apply").click().run()
    assert {k: v for k, v in app.session_state["parameters"].items() if v} == {"crag": {"high": 0.4}}
    assert set(app.session_state["routes"]) == {"bm25", "crag", "hybrid_rrf"}
    assert app.session_state["answer_evidence"] == 0.3
    assert "“for tiny” is applied." in shown(app)
    requests, start = [], engine.start
    monkeypatch.setattr(engine, "start", lambda request: (requests.append(request), start(request))[1])
    app.text_area(key="question").set_value("My box arrived crushed").run()
    app.button(key="run").click().run()
    (request,) = requests
    assert (request.parameters, request.style.evidence) == ({"crag": {"high": 0.4}}, 0.3)
    app.button(key="named_undo").click().run()
    assert app.session_state["routes"] == ["bm25"]
    assert "answer_evidence" not in app.session_state
    assert "in place" not in shown(app)


def test_they_are_deleted_with_undo(visit, engine, preset):
    app = visit()
    app.button(key="named_delete").click().run()
    assert presets.every(engine.store) == ()
    assert "“for tiny” is deleted." in shown(app)
    assert "No presets are saved for corpus tiny." in shown(app)
    app.button(key="named_undo").click().run()
    assert replace(presets.named(engine.store, "for tiny"), changed="") == preset


def test_settings_of_another_version_are_an_error_in_words(visit, engine, preset, monkeypatch):
    old = replace(preset, parameters={"crag": {"gone": 1}})
    monkeypatch.setattr(presets, "every", lambda *_: (old,))
    app = visit()
    before = dict(app.session_state["parameters"])
    app.button(key="named_apply").click().run()
    assert not app.exception
    assert "preset 'for tiny' cannot be used as it is: route crag has no parameter 'gone'" in shown(app)
    assert app.session_state["parameters"] == before
