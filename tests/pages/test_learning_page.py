"""Learned fusion on the Tune page: refusals in words, fitting, what the weights are worth, use, delete."""

import json
import time
from dataclasses import replace

import pytest

from core.backends import fusion_weights as files
from core.domain.background_job import jobs
from core.domain.format import number
from core.domain.needs import Need
from core.domain.types import Query
from core.evaluation import experiment_store
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment import Prepared, perform
from core.evaluation.runner import Plan
from core.evaluation.spec import Spec
from core.evaluation.tuning import fusion_weights
from core.routes.registry import routes
from tests.fakes import some_weights
from tests.pages.reading import html, shown
from tests.runs import HOSTILE
from ui.app import state

ROUTES = ("bm25", "rerank")
TOPICS = ("fragile box", "refund item", "express parcel", "customs invoice", "crushed photos")
GOLD = ("fragile:0-80", "returns:90-180", "express:0-80", "customs:0-80", "crushed:0-80")
FITTED = next(route for route in routes().values() if Need.WEIGHTS in route.needs)


@pytest.fixture
def evaluated(engine, once):
    """Keep an evaluation of so many questions under a name."""

    def keep(name, count):
        ready = prepared(count)
        folder = experiment_store.place(engine.settings, name)
        return once(folder, f"learning {count}", lambda made: perform(engine, ready, out=made))

    return keep


def prepared(count):
    questions = tuple(
        Question(f"q{n}", Query(f"{TOPICS[n % 5]} {n}"), split="dev" if n % 5 else "test")
        for n in range(count)
    )
    qrels = {q.id: {GOLD[n % 5]: 3, "returns:0-90": 2, "keys:0-80": 2} for n, q in enumerate(questions)}
    labelled = LabelledSet("tiny", questions, qrels, 2)
    spec = Spec("tiny", ROUTES, split="all")
    return Prepared(spec, labelled, Plan("tiny", ROUTES), ROUTES[0], (), None)


@pytest.fixture
def evaluation(evaluated):
    evaluated("mine", 50)


@pytest.fixture
def small(evaluated):
    evaluated("mine", 4)


@pytest.fixture(autouse=True)
def forgotten():
    yield
    jobs.clear()


def learning(visit, **params):
    return visit("tune.py", tab="Learned fusion", **params)


def settled(app):
    until = time.time() + 30
    while "fit_stop" in [one.key for one in app.button] and time.time() < until:
        time.sleep(0.1)
        app.run()
    assert not app.exception, app.exception
    return app


def button(app, key):
    return next(one for one in app.button if one.key == key)


def test_too_few_labels_are_refused_in_words_and_cannot_be_fitted(evaluated, visit):
    evaluated("few", 20)
    app = learning(visit, evaluation="few")
    assert "16 labelled questions, but at least 40 are needed" in shown(app)
    assert "48 relevant passages" in shown(app)
    assert button(app, "fit_begin").disabled
    assert "No weights fitted for tiny yet" in shown(app)


def test_weights_are_fitted_and_their_figures_shown(engine, evaluation, visit):
    app = learning(visit, evaluation="mine", lists="bm25,dense")
    assert "40 labelled questions with 120 relevant passages to fit on; 10 are held out" in shown(app)
    assert "MaxSim over tokens: " in shown(app), "what cannot be fused is told, with the way to get it"
    button(app, "fit_begin").click().run()
    settled(app)
    home = engine.settings.home
    assert files.names(home, "tiny") == ["dev-1"]
    found = files.read(home, "tiny")
    page = html(app)
    for part in ("held out", "out of fold"):
        figures = found.made[part]
        assert number(figures["ndcg@10"]) in page
        for one in (*figures["against"].values(), *figures["measured"].values()):
            assert number(one["delta"], signed=True) in page
    assert set(found.made["held out"]["measured"]) == {"rerank"}
    assert "Each list adds to the score of its first passage" in html(app)
    spec = json.loads(app.main.get("plotly_chart")[-1].proto.spec)
    drawn = {bar["name"]: bar["x"] for bar in spec["data"] if bar["type"] == "bar"}
    assert len(drawn) == len(files.FEATURES)
    assert "of each fold" in page


def test_a_fit_that_fails_tells_why(evaluation, visit, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("the disk <b>is</b> full")

    monkeypatch.setattr(fusion_weights, "perform", broken)
    app = learning(visit, evaluation="mine")
    button(app, "fit_begin").click().run()
    settled(app)
    assert "The fit failed: RuntimeError: the disk <b>is</b> full" in shown(app)


def test_fewer_lists_and_all_questions_are_chosen_and_linked(evaluation, visit):
    app = learning(visit, evaluation="mine", lists="dense", split="all")
    assert app.multiselect[0].value == ["dense"]
    assert "50 labelled questions with 150 relevant passages" in shown(app)
    assert "None are held out" in shown(app)
    assert (app.query_params["lists"], app.query_params["split"]) == ("dense", "all")
    app.multiselect[0].set_value([]).run()
    assert "Choose at least one list to fuse" in shown(app)
    assert button(app, "fit_begin").disabled


def test_kept_weights_are_chosen_deleted_and_brought_back(engine, small, visit):
    home = engine.settings.home
    for name in ("one", "two"):
        files.write(home, replace(some_weights(name=name), fingerprint="earlier"))
    app = learning(visit, evaluation="mine", weights="one")
    assert "The corpus has been reindexed since" in shown(app)
    assert "no record of how they were fitted" in shown(app)
    button(app, "fit_delete_now").click().run()
    assert files.names(home, "tiny") == ["two"]
    assert "Deleted one." in shown(app)
    button(app, "fit_undo_delete").click().run()
    assert set(files.names(home, "tiny")) == {"one", "two"}
    assert "Deleted one." not in shown(app)


def test_what_is_told_of_weights_may_be_damaged(engine, small, visit):
    files.write(engine.settings.home, replace(some_weights(), made={"out of fold": {"ndcg@10": "high"}}))
    app = learning(visit, evaluation="mine")
    assert "The figures of these weights cannot be read" in shown(app)
    assert "Each list adds to the score of its first passage" in html(app)


def test_damaged_weights_are_told_and_can_be_deleted(engine, small, visit):
    files.write(engine.settings.home, some_weights()).write_text("{")
    app = learning(visit, evaluation="mine")
    assert "the fitted weights some of tiny cannot be used" in shown(app)
    button(app, "fit_delete_now").click().run()
    assert files.names(engine.settings.home, "tiny") == []
    assert "cannot be restored" in shown(app)


def test_weights_are_put_into_compare_and_taken_out_again(engine, small, visit):
    files.write(engine.settings.home, some_weights())
    app = visit()  # Compare, which chooses routes
    app.query_params["tab"] = "Learned fusion"
    app.switch_page("tune.py").run()
    before = list(app.session_state[state.ROUTES])
    button(app, "fit_use").click().run()
    assert FITTED.name in app.session_state[state.ROUTES]
    assert app.session_state[state.PARAMETERS][FITTED.name] == {"weights": "some"}
    assert "Set for the next run" in shown(app)
    button(app, "fit_undo_use").click().run()
    assert app.session_state[state.ROUTES] == before
    assert FITTED.name not in app.session_state[state.PARAMETERS]


def test_hostile_text_of_a_file_is_only_text(engine, small, visit):
    text = " ".join(HOSTILE)
    files.write(engine.settings.home, replace(some_weights(), made={"of": text, "how": text, "date": text}))
    app = learning(visit, evaluation="mine")
    told = "".join(element.value for kind in (app.caption, app.markdown) for element in kind)
    assert not any(evil in told for evil in HOSTILE)
    assert "<script" not in html(app)
