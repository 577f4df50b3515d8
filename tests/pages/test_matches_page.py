"""Matches on Compare: the token heatmap and the terms searched with, drawn from stored runs."""

from dataclasses import replace

import pytest

from core.domain.background_job import jobs
from core.domain.errors import Unavailable
from core.domain.outputs import MatchedPassage, Search, TokenMatches
from core.domain.types import Query, RouteResult, Span
from core.engine.request import Request
from tests.pages.reading import html, plain
from tests.runs import HOSTILE, make_run


@pytest.fixture
def matched(engine):
    """A run by the real steps, stored, whose engine can then do nothing more."""
    routes = ("bm25", "late_interaction", "splade")
    run = engine.ask(Request(Query("How do I send a fragile item back?"), "tiny", routes))
    assert [result.status for result in run.results] == ["ok"] * 3
    assert engine.store.flush()
    jobs.clear()
    return run


def open_tab(visit, run_id):
    return visit(run=run_id, tab="Matches")


def test_heatmap_and_terms_are_drawn_from_the_stored_run(visit, engine, matched, monkeypatch):
    def broken(*_):
        raise Unavailable("a stored run must need no model and no corpus")

    monkeypatch.setattr(type(engine), "corpus", broken)
    app = open_tab(visit, matched.id)
    page = html(app)
    _, late, sparse = matched.results
    assert len(app.get("plotly_chart")) == 1
    assert "hash tokens · score by matching tokens" in page
    assert "<bdi>send</bdi> 1.00" in page
    assert f"{late.hits[0].score:.2f}" in page
    assert "hash terms · search learned term weights" in page
    for term, weight in sparse.spans[0].output.expansion:
        assert f'<bdi>{term}</bdi></td><td class="num">{weight:.2f}' in page
    for hit in sparse.hits[:5]:
        assert f'<td class="num">{hit.score:.2f}</td>' in page
    box = app.selectbox(key="match-late_interaction-0")
    assert len(box.options) == 3
    first = app.get("plotly_chart")[0].proto.spec
    box.set_value(1).run()
    assert not app.exception
    assert app.get("plotly_chart")[0].proto.spec != first


def test_a_run_without_matches_says_so(visit, stored):
    assert "recorded which tokens or terms" in html(open_tab(visit, "good"))


def test_hostile_tokens_and_terms_are_shown_as_text(visit, engine):
    tokens = (*HOSTILE, "plain")
    rows = ((0.5,) * len(tokens),) * len(tokens)
    id = next(iter(make_run(hostile=True).passages))
    hit = MatchedPassage(id, tuple((t, 0.5) for t in tokens), tokens, 400, rows)
    told = TokenMatches(tokens, (hit, MatchedPassage(HOSTILE[2], ())))
    terms = tuple((token, 1.5) for token in tokens)
    output = Search(model=HOSTILE[0], terms=40, expansion=terms, matched={id: terms}, tokens=told)
    span = Span(1, None, HOSTILE[1], "RERANKER", 0, 1, {}, output)
    result = RouteResult("unheard_of", HOSTILE[2], "ok", 1.0, spans=(span,))
    engine.store.save(replace(make_run(hostile=True, run_id="tokens", corpus="tiny"), results=(result,)))
    assert engine.store.flush()
    app = open_tab(visit, "tokens")
    page = html(app)
    for mark in ("<img", "<script", "<svg", 'onmouseover="alert', "</style></div><svg"):
        assert mark not in page, mark
    assert "&lt;img src=http://evil.example/x.png" in page
    assert f"and {40 - len(tokens)} terms with lower weights" in page
    assert any(f"columns {len(tokens)} of 400 passage tokens" in plain(one.value) for one in app.caption)
