"""The passage looked at on Compare: lit up, in full, with what its terms add; and the view's address."""

import re
import time
from dataclasses import replace

import pytest
import streamlit as st
from markupsafe import Markup

from core.analysis.term_contributions import Marker, searched_by_terms
from core.domain.background_job import jobs
from core.domain.types import Hit, Passage, Query
from core.engine.request import Request
from tests.large import large_run
from tests.pages.reading import address, html, plain
from tests.runs import HOSTILE, make_run
from ui.compare.overlap import describe_overlap as overlap_told
from ui.components import grid as grid_module
from ui.components.grid import WHOLE_HITS, View, dense, drawn, grid, kept
from ui.components.hits import marked
from ui.components.passage import compared


def styles(app):
    """The rule that lights a passage up."""
    return "\n".join(e.proto.body for e in app.get("html") if e.proto.body.startswith("<style>.rs"))


def captions(app):
    return "\n".join(plain(element.value) for element in app.main.caption)


@pytest.fixture
def asked(engine):
    """A run by the real steps, stored."""
    routes = ("bm25", "late_interaction", "splade", "dense")
    run = engine.ask(Request(Query("How to send fragile items back?"), "tiny", routes))
    assert engine.store.flush()
    jobs.clear()
    return run


# Picking.


def test_a_picked_passage_is_lit_in_every_column_and_named_in_the_address(visit, stored):
    run = stored["good"]
    id = run.results[0].hits[2].passage.id
    app = visit(run="good", tab="Columns")
    assert "rs-passage-text" not in html(app)
    assert "data-p" not in styles(app)
    grid_before = next(e.proto.body for e in app.main.get("html") if "rs-grid" in e.proto.body)
    app.selectbox(key="passage").set_value(id).run()
    assert address(app, "passage") == id
    page = html(app)
    assert grid_before in page, "so that a browser has nothing to draw again"
    within = sum(id in [hit.passage.id for hit in result.hits[:10]] for result in run.results)
    number = list(run.passages).index(id)
    assert f'[data-p="{number}"]{{background' in styles(app)
    assert page.count(f'<details class="rs-hit" data-p="{number}">') == within > 1
    assert f"{within} of 8 routes have it in their top 10" in page
    app.button(key="close_passage").click().run()
    assert "rs-passage-text" not in html(app)
    assert address(app, "passage") is None
    assert "data-p" not in styles(app)


def test_a_link_reopens_exactly_this_view(visit, stored):
    id = stored["good"].results[0].hits[2].passage.id
    view = {
        "baseline": "dense",
        "depth": "20",
        "density": "L",
        "tab": "Overlap",
        "overlap": "rbo",
    }
    app = visit(run="good", passage=id, **view)
    assert not app.exception
    assert app.selectbox(key="baseline").value == "dense"
    assert app.session_state["depth"] == 20
    assert app.session_state["density"] == "L"
    assert app.session_state["passage"] == id
    assert "Found by only one route" in html(app)
    assert "p = 0.9: the first 10 ranks carry 86%" in captions(app)
    for name, value in {**view, "passage": id, "run": "good"}.items():
        assert address(app, name) == value
    app.session_state["link_menu"] = True
    link = next(block.value for block in app.run().code if "passage=" in block.value)
    assert all(f"{name}={value}" in link for name, value in view.items())


def test_an_address_that_makes_no_sense_is_left_aside(visit, stored):
    app = visit(run="good", baseline="nobody", depth="11", density="XL", tab="Nowhere", passage=HOSTILE[0])
    assert not app.exception
    assert app.selectbox(key="baseline").value == "bm25"
    assert app.session_state["depth"] == 10
    assert set(app.query_params) == {"run"}, "what is as ever is not in the address"
    app.selectbox(key="baseline").set_value("dense").run()
    assert address(app, "baseline") == "dense"


def test_a_new_run_keeps_the_view_and_drops_a_passage_it_does_not_know(visit, engine, stored):
    id = stored["good"].results[0].hits[0].passage.id
    app = visit(run="good", passage=id, density="L")
    app.session_state["corpus"] = "tiny"
    app.session_state["routes"] = ["bm25", "dense"]
    app.text_area(key="question").set_value("fragile")
    app.button(key="run").click().run()
    engine.job(address(app, "run")).wait(10)
    app.run()
    assert not app.exception
    assert address(app, "run") != "good"
    assert address(app, "density") == "L"
    assert address(app, "passage") is None


# The panel.


def test_terms_are_marked_and_their_parts_add_up_to_the_stored_score(visit, asked):
    hit = asked.results[0].hits[0]
    app = visit(run=asked.id, passage=hit.passage.id)
    page = html(app)
    assert "<mark>Fragile</mark>" in page or "<mark>fragile</mark>" in page
    assert "The sum is the score stored in the run" in page
    assert f'BM25 score</td><td class="num">{hit.score:.2f}' in page
    assert searched_by_terms(asked)[asked.query.text][hit.passage.id] == hit.score


def test_a_corpus_or_a_passage_that_is_not_there_is_said(visit, engine, stored):
    run = stored["good"]
    hit = run.results[0].hits[0]
    assert "current corpus does not contain this passage" in captions(
        visit(run="good", passage=hit.passage.id)
    )
    engine.store.save(replace(run, id="far", corpus="other"))
    app = visit(run="far", passage=hit.passage.id)
    assert "are not available: corpus 'other' is not built" in captions(app)
    assert hit.passage.text[:40] in html(app).replace("<mark>", "").replace("</mark>", "")


def test_scores_beside_each_other():
    assert "The sum is the score stored in the run." in compared(10.0, 10.004)
    assert "The run stored 11.00" in compared(10.0, 11.0)
    assert "No BM25 search" in compared(10.0, None)


def test_marks_are_made_around_escaped_text():
    made = marked(f"{HOSTILE[0]} vases & <b>", Marker("vase img", ["b vases script"], _plain()))
    assert isinstance(made, Markup)
    assert "&lt;<mark>img</mark> " in made
    assert '&lt;<mark class="other">script</mark>&gt;' in made
    assert "<script" not in made
    assert marked("<i>", None) == "&lt;i&gt;"


def _plain():
    from core.backends.terms import Analyzer

    return Analyzer("none")


# Many routes.


def test_a_grid_of_25_routes_and_50_hits_is_lean_and_quick():
    run = large_run()
    view = View(run.results[0].route, 50, "M", {}, run.results[0].hits[0].passage.id)
    assert drawn(run, view) == 1250 > WHOLE_HITS
    began = time.process_time()
    page = grid(run, view)
    assert time.process_time() - began < 8  # a hundred times what it takes alone
    assert page.count('<div class="rs-hit') == 1250
    lost = page.count('class="rs-gone"')
    assert page.count("<") - page.count("</") < 2 * 1250 + 3 * lost + 600, "two elements a hit"
    assert len(page.encode()) < 700_000
    assert page.count('class="full"') == 2, "the citations of one answer"
    small = grid(run, replace(view, depth=10))
    assert small.count('class="full" dir="auto"') >= 250


def test_a_hit_of_very_many_says_what_one_of_few_says():
    run = large_run()
    view = View(run.results[0].route, 50, "M", {run.results[0].hits[1].passage.id: 3})
    few = replace(run, results=run.results[:2])
    assert drawn(few, view) <= WHOLE_HITS < drawn(run, view)
    opening = re.findall(
        r'<details class="rs-hit( gold)?" data-p="(\d+)"><summary><span class="rank">(\d+)</span>'
        r'<span class="title" dir="auto">(.*?)</span><span class="move[^>]*>(.*?)</span>.*?'
        r'<span class="score">([\d.]+)(<span class="chip.*?</span>)?</span></summary>',
        grid(few, view),
    )
    flat = re.findall(
        r'<div class="rs-hit( gold)?" data-p="(\d+)" data-s="([\d.]+)"(?: data-m="(.*?)")?>'
        r'((?:<span class="(?:chip|grade).*?</span>)*)(.*?)'
        r'<span class="snip" data-r="(\d+)">',
        grid(run, view),
    )
    assert len(opening) == 100
    assert [(g, p, r, t, s, m) for g, p, r, t, m, s, _ in opening] == [
        (g, p, r, t, s, m) for g, p, s, m, _, t, r in flat[:100]
    ]
    assert {g for g, *_ in opening} == {"", " gold"}
    assert {one[4][:1] for one in opening} >= {"", "▲", "▼", "n"}


def test_the_grid_is_the_same_at_every_density():
    run = make_run(mishaps=False)
    assert len({grid(run, View("bm25", 10, density)) for density in "SML"}) == 1
    assert dense("M") == "<style>.rs-none{}</style>"
    assert ".snip { display: none; }" in dense("S")
    assert len({dense(density) for density in "SML"}) == 3


def test_a_grid_is_drawn_once_for_all_that_it_shows(monkeypatch):
    run = make_run(mishaps=False)
    drawings = []
    monkeypatch.setattr(
        grid_module, "grid", lambda *given, **more: drawings.append(1) or grid(*given, **more)
    )
    view = View("bm25", 10, "M", {next(iter(run.passages)): 2}, "lit")
    marker = Marker("vase", [], _plain())
    st.cache_data.clear()
    assert kept(run, view, marker) == grid(run, view, marker=marker)
    again = replace(run, results=tuple(replace(one) for one in run.results))
    assert kept(again, replace(view, density="S", lit=None), Marker("vase", [], _plain())) == kept(
        run, view, marker
    )
    assert len(drawings) == 1
    first = run.results[0]
    answered = replace(run, results=(replace(first, answer="Only now [1]."), *run.results[1:]))
    others = [
        (answered, view, marker),
        (replace(run, results=run.results[1:]), view, marker),
        (run, replace(view, depth=5), marker),
        (run, replace(view, baseline="dense"), marker),
        (run, replace(view, gold={}), marker),
        (run, view, Marker("box", [], _plain())),
        (run, view, None),
    ]
    for count, (one, seen, words) in enumerate(others, 2):
        assert kept(one, seen, words) == grid(one, seen, marker=words)
        assert len(drawings) == count
    assert "Only now" in kept(answered, view, marker)


def test_texts_left_out_are_told_on_the_page(visit, engine):
    engine.store.save(large_run(corpus="tiny"))
    app = visit(run="large", depth="50", tab="Columns")
    assert "1,250 hits. Above 400" in html(app)
    assert "25 of 25 routes, " in captions(app)
    app.session_state["depth"] = 10
    app.run()
    assert "Above 400" not in html(app)


# Overlap, cost, citations.


def test_the_overlap_is_told_in_words(visit, stored):
    from core.analysis.rank_overlap import overlap

    app = visit(run="good", tab="Overlap")
    said = plain(app.main.markdown[0].value)
    assert said == overlap_told(overlap(stored["good"], "jaccard", depth=10))
    assert said.startswith("Most similar: ")
    one = replace(stored["good"], results=stored["good"].results[:1])
    assert overlap_told(overlap(one, "rbo")) == "Comparing rankings needs at least two routes with results."


def test_costs_are_the_stores_and_priced_where_prices_are_told(visit, engine, stored, monkeypatch):
    from core.analysis.token_usage import add, price, totals

    app = visit(run="good", tab="Cost")
    page = html(app)
    used = [totals(result) for result in stored["good"].results]
    most = max(used, key=lambda one: one.tokens)
    assert f"uses the most: {most.tokens:,} tokens in {most.calls} calls" in page
    assert "Prices are not set: set llm_price_prompt" in page
    assert f'CRAG</td><td class="num">{most.calls}</td><td class="num">{most.prompt}</td>' in page
    priced = engine.settings.model_copy(update={"llm_price_prompt": 2.0, "llm_price_completion": 8.0})
    monkeypatch.setattr(engine, "settings", priced)
    page = html(app.run())
    foot = page[page.index("<tfoot>") : page.index("</tfoot>")]
    for one, where in ((most, page), (add(each.spent for each in used), foot)):
        assert f'<td class="num">{price(one, 2.0, 8.0):.4g}</td>' in where


def test_a_citation_opens_its_passage(visit, engine, stored):
    run = stored["good"]
    hit: Hit = run.results[0].hits[0]
    cites = replace(run.results[0], answer="So it is [1].", citations=(hit.passage.id,))
    engine.store.save(replace(run, id="cites", results=(cites, *run.results[1:])))
    for tab in ("Columns", "Answers"):
        page = html(visit(run="cites", tab=tab))
        assert '<details class="cite"><summary title=' in page
        assert (
            f'[1]</summary><div class="full" dir="auto"><b>{hit.passage.title}</b>\n{hit.passage.text}'
            in page
        )


def test_a_labelled_passage_that_no_route_found_is_read_from_the_corpus(visit, engine, asked, monkeypatch):
    missed = Passage(
        "returns:900-960", "returns", "Returns", "A fragile vase is sent back in two boxes.", 900, 960
    )
    monkeypatch.setattr("ui.compare.results.gold_grades", lambda _: {missed.id: 3})
    corpus = engine.corpus("tiny")
    monkeypatch.setattr(
        type(corpus), "by_ids", lambda _self, ids: {missed.id: missed} if missed.id in ids else {}
    )
    app = visit(run=asked.id, passage=missed.id)
    assert "vase is sent" in html(app).replace("<mark>", "").replace("</mark>", "")
    assert "0 of 4 routes have it in their top 10" in html(app)
    assert 'class="grade on g3" title="labelled 3: answers the question"' in html(app)
