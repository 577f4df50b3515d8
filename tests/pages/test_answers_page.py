"""Answers on Compare, drawn from stored runs."""

import pytest

from core.domain.background_job import jobs
from core.domain.types import Query
from core.engine.request import Request
from tests.fakes import ScriptedLLM
from tests.pages.reading import html
from tests.runs import HOSTILE


def open_tab(visit, run_id, tab):
    return html(visit(run=run_id, tab=tab))


def keep(engine, run):
    engine.store.save(run)
    assert engine.store.flush()
    jobs.clear()
    return run


@pytest.fixture
def answered(engine):
    """A run whose answers cite right, cite wrongly, say nothing or hold back."""
    engine.fake_llm = ScriptedLLM({"evidence": "0.9", "answer": f"Ask first [1][7]. {HOSTILE[0]} is said."})
    run = engine.ask(
        Request(Query("How do I send a fragile item back?"), "tiny", ("bm25", "dense"), answers="all")
    )
    return keep(engine, run)


def test_wrong_and_missing_citations_are_marked(visit, answered):
    page = open_tab(visit, answered.id, "Answers")
    assert 'class="cite bad" title="No passage has this number">[7?]' in page
    assert 'title="Returns' in page, "a marker tells its passage"
    assert "1 wrong citations" in page
    assert "&lt;img src" in page
    assert "<img" not in page


def test_an_abstention_says_so(visit, engine):
    engine.fake_llm = ScriptedLLM({"evidence": "0.1"})
    run = keep(engine, engine.ask(Request(Query("fragile"), "tiny", ("bm25",), answers="all")))
    page = open_tab(visit, run.id, "Answers")
    assert 'class="chip">abstains' in page
    assert "P(Yes) 0.10 is below 0.58" in page, "why is told beside it"


def test_a_run_without_answers_or_decisions_says_what_to_do(visit, stored):
    assert "Use the Answers menu" in open_tab(visit, "good", "Answers")
