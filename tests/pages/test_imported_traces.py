"""Runs that were made of traces open on the pages about one run, and say what they are."""

from __future__ import annotations

import re
from itertools import product

import pytest

from core.engine.imported import imported
from core.evaluation.gold import Gold
from core.evaluation.labels import desk as desks
from tests.fakes import MemoryCorpus
from tests.pages.reading import html, shown
from tests.unit.store.test_traces_in import SHOP, otlp, parsed

TINY = MemoryCorpus({passage.id: passage.text for passage in SHOP.all}, "tiny")


@pytest.fixture
def traced(engine):
    """Two stored runs of traces: one with a reranker and an answer, one without scores."""
    found = imported(parsed(otlp()).traces, TINY, "theirs")
    engine.store.add_runs(found.runs)
    return found.runs


def test_each_page_opens_a_trace(visit, traced):
    steps = [f"steps.py?view={name}" for name in ("Transform", "Fusion", "Evaluators")]
    for run, page in product(traced, ("why.py", "latency.py", *steps)):
        app = visit(page, run=run.id)
        assert not app.exception, app.exception
        assert run.query.text in shown(app) + html(app)


def test_compare_shows_the_route_with_its_answer_and_why_where_the_reranker_dropped_a_passage(
    visit, traced, monkeypatch
):
    app = visit("compare.py", run=traced[0].id)
    text = re.sub("<[^>]+>", "", html(app) + shown(app))  # the question's words are marked in it
    for part in ("shop-rag", "To start a return, ask for a return merchandise auth", "Ask for an RMA first."):
        assert part in text
    monkeypatch.setattr("ui.components.gold.gold_of", lambda _: Gold({"damage:0": 2}))
    page = html(visit("why.py", run=traced[0].id))
    assert "At rank 1 in “vector search”; “rerank” dropped it." in page


def test_a_wrong_answer_of_a_trace_becomes_a_test(visit, traced, engine):
    """From production to a regression set: with the passage that should have been there."""
    run = traced[0]
    passage = run.results[0].hits[0].passage.id
    app = visit("why.py", run=run.id, passage=passage)
    app.session_state["wrong_here_box"] = True
    next(one for one in app.run().button if one.key == "wrong_here_save").click().run()
    assert not app.exception
    (made,) = desks.sets(engine.store)
    (question,) = desks.load(engine.store, made.name).questions
    assert (made.corpus, question.query) == (run.corpus, run.query)
    (one,) = question.complaints
    assert (one.run, one.route, one.passage) == (run.id, run.results[0].route, passage)
