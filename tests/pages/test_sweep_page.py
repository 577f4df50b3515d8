"""Sweeps on the Tune page: words, curve and map, values that take a run, what is kept, links."""

import json
import time

import pytest

from core.domain.background_job import jobs
from core.domain.types import Query
from core.evaluation import experiment_store
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment import Prepared, perform
from core.evaluation.runner import Plan
from core.evaluation.spec import Spec
from core.evaluation.tuning import sweep
from core.store import presets
from tests.fakes import ScriptedLLM
from tests.pages.reading import html, shown
from tests.runs import HOSTILE

ROUTES = ("hybrid_rrf", "hybrid_linear", "rerank", "rag_fusion", "bm25")
ASKED = (
    "How do I send a fragile item back?",
    "When is the refund paid?",
    "Does customs hold a parcel?",
    "The box arrived crushed",
    "Express shipping to Belgium",
    "How long are keys stored?",
)
GOLD = ("fragile:0-80", "returns:90-180", "customs:0-80", "crushed:0-80", "express:0-80", "keys:0-80")


def labelled():
    questions, qrels = [], {}
    for n in range(24):
        questions.append(Question(f"q{n}", Query(f"{ASKED[n % 6]} {n}"), split="dev" if n % 2 else "test"))
        if n < 22:
            qrels[f"q{n}"] = {GOLD[n % 6]: 3, GOLD[(n + 1) % 6]: 1}
    return LabelledSet("tiny", tuple(questions), qrels, 2)


@pytest.fixture
def evaluation(engine, once):
    engine.fake_llm = ScriptedLLM({"variants": "claim a box\nexpress label\nphoto of it"})
    ready = Prepared(Spec("tiny", ROUTES, split="all"), labelled(), Plan("tiny", ROUTES), ROUTES[0], (), None)
    folder = experiment_store.place(engine.settings, "mine")
    return experiment_store.opened(once(folder, "sweeps", lambda made: perform(engine, ready, out=made)))


def chart(app):
    return json.loads(app.main.get("plotly_chart")[-1].proto.spec)


def sweeps(visit, **params):
    return visit("tune.py", tab="Sweeps", evaluation="mine", **params)


def settled(app, seconds=20):
    """Draw until nothing is under way."""
    until = time.time() + seconds
    while "sweep_stop" in [one.key for one in app.button] and time.time() < until:
        time.sleep(0.05)
        app.run()
    assert not app.exception, app.exception
    return app


def test_the_first_parameter_is_tried_and_told_in_words(visit, evaluation):
    app = settled(sweeps(visit, route="hybrid_rrf"))
    assert "k = " in html(app)
    assert "on the 11 dev questions" in html(app)
    assert "11 labelled questions to choose on and 11 held out" in shown(app)
    assert "2 have no relevant passage" in shown(app)
    assert "in use" in json.dumps(chart(app))
    assert app.text_input(key="sweep_grid:hybrid_rrf:k:False").value.startswith("1, ")
    assert app.query_params["route"] == "hybrid_rrf"


def test_an_address_opens_the_view_again_and_names_what_is_not_as_ever(visit, evaluation):
    app = settled(
        sweeps(visit, route="hybrid_linear", parameter="alpha", grid="0.2, 0.4, 0.5", metric="mrr@10")
    )
    assert app.selectbox(key="sweep_metric").value == "mrr@10"
    assert "MRR@10" in html(app)
    assert chart(app)["data"][0]["x"] == [0.2, 0.4, 0.5]
    app.selectbox(key="sweep_metric").set_value("map").run()
    assert app.query_params["metric"] == "map"
    assert app.query_params["grid"] == "0.2, 0.4, 0.5"


def test_a_grid_that_cannot_be_read_says_what_is_allowed(visit, evaluation):
    app = settled(sweeps(visit, route="hybrid_linear", grid="0.2, 7"))
    assert "'7' is not allowed; expected a number from 0 to 1" in shown(app)
    app = settled(sweeps(visit, route="hybrid_linear", grid="0..1 step 0.001"))
    assert "give at most 41" in shown(app)


def test_two_parameters_make_a_map(visit, evaluation):
    app = settled(sweeps(visit, route="hybrid_rrf", parameter="k", parameter2="dense_weight"))
    drawn = chart(app)
    assert drawn["data"][0]["type"] == "heatmap"
    assert len(drawn["layout"]["shapes"]) == 2
    assert "Dashed frame: in use" in shown(app)


def test_values_that_take_a_run_are_run_where_no_model_is_asked(visit, evaluation):
    app = settled(sweeps(visit, route="rerank", parameter="candidates", grid="5, 20"))
    assert "needs a run" not in html(app)
    page = html(app)
    assert "run" in page
    assert "candidates = 50" in page


def test_a_route_that_asks_a_model_says_what_it_costs_first(visit, engine, evaluation):
    app = sweeps(visit, route="rag_fusion", parameter="n", grid="1, 3")
    assert "questions need a run that may call a model; about 22 model calls" in shown(app)
    asked = len(engine.fake_llm.requests)
    app.run()
    assert len(engine.fake_llm.requests) == asked, "nothing is asked by itself"
    app.button(key="sweep_ask").click().run()
    settled(app)
    assert len(engine.fake_llm.requests) == asked + 22
    assert "needs a run" not in html(app)


def test_stop_keeps_what_was_found(visit, engine, evaluation):
    engine.fake_llm.delay = 0.2
    app = sweeps(visit, route="rag_fusion", parameter="n", grid="1, 3")
    app.button(key="sweep_ask").click().run()
    app.button(key="sweep_stop").click().run()
    runs = [job for job in jobs.known() if isinstance(job, sweep.Running)]
    assert runs[-1].wait(10)
    app.run()
    assert "their results are saved" in shown(app)
    assert "needs a run" in html(app)


def test_a_value_is_kept_as_parameters_and_as_a_preset_and_undone(visit, engine, evaluation):
    app = settled(sweeps(visit, route="hybrid_rrf", parameter="k", grid="1, 60"))
    app.session_state["routes"] = ["bm25"]
    app.selectbox(key="sweep_point:hybrid_rrf:k").set_value((1,)).run()
    app.button(key="sweep_keep").click().run()
    assert app.session_state["parameters"]["hybrid_rrf"] == {"k": 1}
    assert app.session_state["routes"] == ["bm25", "hybrid_rrf"]
    assert app.session_state["corpus"] == "tiny"
    assert "Set for the next run: Hybrid (RRF) with k = 1." in shown(app)
    app.button(key="sweep_undo_keep").click().run()
    assert app.session_state["routes"] == ["bm25"]
    assert "Kept for" not in shown(app)
    app.text_input(key="sweep_name").set_value("tried").run()
    app.button(key="sweep_save").click().run()
    (kept,) = presets.every(engine.store)
    assert (kept.name, kept.corpus, kept.parameters) == ("tried", "tiny", {"hybrid_rrf": {"k": 1}})
    assert "sweep over evaluation mine, nDCG@10" in kept.note
    assert "11 dev questions" in kept.note
    app.button(key="sweep_undo_save").click().run()
    assert presets.every(engine.store) == ()


def test_hostile_labels_and_a_corpus_indexed_again_are_told(visit, engine, evaluation):
    from tests.fakes import MemoryCorpus

    engine.fakes["tiny"] = MemoryCorpus({"a:0-1": HOSTILE[0]})
    app = settled(sweeps(visit, route="rerank", parameter="candidates", grid="5, 50"))
    assert "reindexed since evaluation mine" in shown(app)
    assert "<script" not in html(app)


def test_routes_without_parameters_say_so(visit, engine):
    folder = experiment_store.place(engine.settings, "mine")
    spec = Spec("tiny", ("adaptive",), split="all")
    perform(engine, Prepared(spec, labelled(), Plan("tiny", ("adaptive",)), "adaptive", (), None), out=folder)
    app = sweeps(visit)
    assert app.subheader[0].value == "No route of this evaluation has a parameter"
