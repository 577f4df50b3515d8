"""Fusion: real runs of in-memory backends, their sliders, and what is kept of them."""

import json
import time
from dataclasses import replace

import pytest

from core.analysis.what_if.fusion import fusions, recompute
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation import sets
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.gold import Gold
from core.routes.registry import routes
from tests.pages.reading import address, html, plain, shown

QUESTION = "How do I send a fragile item back?"


def bars(app):
    return [json.loads(one.proto.spec) for one in app.main.get("plotly_chart")][-1]["data"]


@pytest.fixture
def asked(engine):
    """A run of routes that fuse, and one that does not."""
    names = ("bm25", "hybrid_rrf", "hybrid_linear", "mmr", "rerank")
    run = engine.ask(Request(Query(QUESTION), "tiny", names))
    assert engine.store.flush()
    return run


@pytest.fixture
def labels(engine, monkeypatch):
    """Labelled questions of the tiny corpus, in two splits."""
    from core.corpus import catalogue
    from core.corpus.chunk import WHOLE
    from core.corpus.source import Source

    questions = (
        Question("q1", Query(QUESTION), split="dev"),
        Question("q2", Query("When is the refund paid?"), split="dev"),
        Question("q3", Query("Does customs hold a parcel?"), split="test"),
        Question("q4", Query("What is the weather?"), split="dev"),
    )
    qrels = {"q1": {"fragile:0-80": 2}, "q2": {"returns:90-180": 3}, "q3": {"customs:0-80": 2}}
    found = LabelledSet("tiny", questions, qrels, 2)
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(sets, "read", lambda *_, **__: found)
    return found


def settled(app, seconds=20):
    """Draw until the labelled questions are through."""
    until = time.time() + seconds
    while "labelled questions, the same before" not in shown(app) and time.time() < until:
        time.sleep(0.05)
        app.run()
    return app


def slider(app, label):
    kinds = (app.slider, app.select_slider)
    return next(one for kind in kinds for one in kind if label in plain(one.label))


def span_of(run, route):
    result = next(one for one in run.results if one.route == route)
    return result, fusions(result)[0]


def test_the_first_route_that_fuses_is_shown_with_the_share_of_each_list(visit, asked):
    app = visit("steps.py?view=Fusion", run=asked.id)
    _, fusion = span_of(asked, "hybrid_rrf")
    assert app.selectbox(key="fusion_route").value == "hybrid_rrf"
    assert "BM25" not in app.selectbox(key="fusion_route").options
    stored = dict(fusion.span.hits)
    data = bars(app)
    drawn = [sum(parts) for parts in zip(data[0]["x"], data[1]["x"], strict=True)]
    assert drawn == [pytest.approx(stored[id]) for id, _ in fusion.span.hits[:10]]
    assert [one["name"] for one in data[:2]] == ["search BM25", "search vectors"]
    assert "Composition of the scores of these 7 passages" in shown(app)
    assert app.button(key="keep_parameters").disabled
    assert "Same as in the run." in html(app)


def test_a_slider_recomputes_at_once_and_is_in_the_address(visit, asked):
    app = visit("steps.py?view=Fusion", run=asked.id)
    _, fusion = span_of(asked, "hybrid_rrf")
    before = bars(app)
    slider(app, "weight of search BM25").set_value(0.0).run()
    after = bars(app)
    assert after[0]["x"] == [0.0] * len(after[0]["x"])
    assert after != before
    expected = recompute(fusion, {"weights.0": 0.0})
    assert [sum(x) for x in zip(after[0]["x"], after[1]["x"], strict=True)] == [s for _, s in expected[:10]]
    slider(app, "k").set_value(5).run()
    assert (address(app, "k"), address(app, "weights.0")) == ("5", "0.0")
    names = ("run", "route", "k", "weights.0")
    again = visit("steps.py?view=Fusion", **{name: address(app, name) for name in names})
    assert bars(again) == bars(app)
    app.button(key="fusion_reset").click().run()
    assert bars(app) == before
    assert "k" not in app.query_params


def test_addresses_that_cannot_be_are_passed_over(visit, asked):
    app = visit(
        "steps.py?view=Fusion", run=asked.id, route="nobody", k="-3", alpha="x", step="99", split="none"
    )
    assert not app.exception
    assert slider(app, "k").value == 60


def test_another_route_has_its_own_settings(visit, asked):
    app = visit("steps.py?view=Fusion", run=asked.id, k="5")
    assert slider(app, "k").value == 5
    app.selectbox(key="fusion_route").set_value("hybrid_linear").run()
    assert "k" not in app.query_params
    slider(app, "alpha").set_value(1.0).run()
    assert bars(app)[0]["x"] == [0.0] * len(bars(app)[0]["x"])
    app.selectbox(key="fusion_route").set_value("mmr").run()
    assert [one["name"] for one in bars(app)[:2]] == ["relevance", "similarity to selected passages"]
    slider(app, "lambda").set_value(1.0).run()
    assert not app.exception


def test_what_follows_a_fusion_is_said_to_be_stale(visit, asked):
    app = visit("steps.py?view=Fusion", run=asked.id, route="rerank")
    assert "To update the later steps, run the question: “rerank by BM25, cosine and MaxSim”" in shown(app)
    slider(app, "pool").set_value(3).run()
    assert "Choose routes" not in shown(app)
    assert "lacks a parameter" in shown(app)
    assert app.button(key="keep_parameters").disabled


def test_kept_parameters_are_those_of_the_next_run_and_can_be_undone(visit, engine, asked):
    app = visit("steps.py?view=Fusion", run=asked.id)
    app.session_state["routes"] = ["dense"]
    slider(app, "k").set_value(5).run()
    slider(app, "weight of search vectors").set_value(2.5).run()
    app.button(key="keep_parameters").click().run()
    assert app.session_state["parameters"]["hybrid_rrf"] == {"k": 5, "dense_weight": 2.5}
    assert set(app.session_state["routes"]) == {result.route for result in asked.results}
    assert "Set for the next run: Hybrid (RRF) with k = 5, dense_weight = 2.5." in shown(app)
    app.button(key="undo_parameters").click().run()
    assert app.session_state["routes"] == ["dense"]
    assert "Kept for" not in shown(app)
    app.button(key="keep_parameters").click().run()
    app.query_params.clear()
    app.query_params["run"] = asked.id
    app.switch_page("compare.py").run()
    assert app.text_area(key="question").value == QUESTION
    app.button(key="run").click().run()
    run = engine.job(address(app, "run")).wait(15)
    again = next(one for one in run.results if one.route == "hybrid_rrf")
    _, fusion = span_of(asked, "hybrid_rrf")
    fresh = tuple((hit.passage.id, hit.score) for hit in again.hits)
    assert fresh == recompute(fusion, {"k": 5, "weights.1": 2.5})


def test_the_labelled_set_tells_what_a_change_does(visit, asked, labels):
    app = settled(visit("steps.py?view=Fusion", run=asked.id))
    assert "No changes yet" in html(app)
    assert "2 labelled questions, the same before" in shown(app)
    assert "1 of 4 have no relevant passage" in shown(app)
    slider(app, "weight of search BM25").set_value(0.0).run()
    assert "95% interval" in html(app)
    app.session_state["fusion_split"] = "test"
    app.run()
    assert "check the other questions once" in shown(app)
    assert "1 labelled questions" in shown(app)
    assert ">the same<" in html(app)  # the value of the one question does not change
    app.session_state["fusion_split"] = "all"
    app.run()
    assert "3 labelled questions" in shown(app)


def test_a_corpus_without_labels_says_how_to_get_some(visit, asked, monkeypatch, labels):
    from core.domain.errors import BadInput

    def none(*_, **__):
        raise BadInput("tiny: no questions")

    monkeypatch.setattr(sets, "read", none)
    app = visit("steps.py?view=Fusion", run=asked.id)
    assert "Corpus tiny has no labelled questions" in shown(app)
    assert "--questions FILE" not in shown(app)
    assert "This question has no labels" in html(app)


def test_gold_passages_tell_where_they_went(visit, asked, monkeypatch):
    monkeypatch.setattr("ui.components.gold.gold_of", lambda _: Gold({"fragile:0-80": 3, "nowhere:0-1": 2}))
    app = visit("steps.py?view=Fusion", run=asked.id)
    page = html(app)
    assert "Labelled passage" in page
    assert "as before" in page
    assert "not ranked" in page
    assert "nDCG@10" in page


def test_a_run_without_fusion_says_so(visit, engine):
    run = engine.ask(Request(Query(QUESTION), "tiny", ("bm25", "dense")))
    assert engine.store.flush()
    app = visit("steps.py?view=Fusion", run=run.id)
    assert app.subheader[0].value == "No route in this run fuses lists"


def test_a_fusion_that_cannot_be_done_again_says_why(visit, engine, asked):
    result, fusion = span_of(asked, "hybrid_rrf")
    bent = replace(fusion.span, args={"k": float("nan"), "weights": None})
    spans = tuple(bent if span.id == bent.id else span for span in result.spans)
    engine.store.save(replace(asked, id="bent", results=(replace(result, spans=spans),)))
    assert "You cannot try other values" in shown(visit("steps.py?view=Fusion", run="bent"))


def test_a_route_of_another_version_is_drawn_without_parameters(visit, engine, asked):
    result, _ = span_of(asked, "hybrid_rrf")
    assert "fuser9" not in routes()
    engine.store.save(replace(asked, id="old", results=(replace(result, route="fuser9"),)))
    app = visit("steps.py?view=Fusion", run="old")
    slider(app, "k").set_value(5).run()
    assert not app.exception
    assert "keep_parameters" not in [one.key for one in app.button]
