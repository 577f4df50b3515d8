"""The page that says why routes lost: diagnoses, fates in words, ranks step by step."""

import re
from dataclasses import replace

import pytest
from markupsafe import escape

from core.analysis.diagnosis import relevant
from core.analysis.passage_trace import PassageTrace
from tests.pages.reading import html, shown
from tests.runs import HOSTILE, make_run


def reopened(visit, **view):
    """The page as a link opens it: with all of the view in its address."""
    return visit("why.py", run="good", **view)


@pytest.fixture
def labelled(monkeypatch, stored):
    """Grades of three passages of the good run: in the tops, low, and in no list."""
    run = stored["good"]
    hits = run.results[0].hits
    gold = {hits[0].passage.id: 3, hits[20].passage.id: 2, "nowhere.md:0-9": 2, hits[5].passage.id: 1}
    monkeypatch.setattr("ui.components.gold.gold_grades", lambda _: gold)
    return gold


def test_a_labelled_question_is_diagnosed_and_figures_are_the_stores(visit, stored, labelled):
    app = visit("why.py", run="good")
    page, run = html(app), stored["good"]
    wanted = relevant(labelled)
    assert len(wanted) == 3
    best = max(
        sum(id in {hit.passage.id for hit in result.hits[:10]} for id in wanted) for result in run.results
    )
    assert f"{best} of 3 relevant passages in the top 10" in page
    assert f"0 of {len(run.results)} routes have all 3 relevant passages" in page
    assert "a follow-up that needs the conversation" in page
    assert "inferred, not labelled" in page
    assert "No list in this run contains it." in page
    for result in run.results:
        for id in wanted:
            fate = PassageTrace(result).fate(id, 10)
            top = fate.rank is not None and fate.rank <= 10
            said = (
                f"<b>{fate.rank}</b> {escape(result.title)}"
                if top
                else f'<td dir="auto">{escape(fate.words)}</td>'
            )
            assert said in page, (result.route, id)
    assert page.count("<details") >= 3


def test_no_labels_is_said_and_the_most_disputed_passage_shown(visit, stored):
    app = visit("why.py", run="good")
    assert "This question has no labels" in shown(app)
    assert "No expected passage is set" in shown(app)
    assert "Lost at" not in html(app)
    assert "Rank after each step" in html(app)


def test_a_link_reopens_the_passage_and_depth(visit, stored):
    id = stored["good"].results[0].hits[7].passage.id
    first = visit("why.py", run="good")
    app = reopened(visit, passage=id, depth="5")
    assert app.selectbox(key="passage").value == id
    assert app.segmented_control(key="depth").value == 5
    assert re.search(r"\d of 8 routes have it in their top 5", html(app)), re.findall(
        r"routes have it.{20}", html(app)
    )
    assert html(app) != html(first)
    told = app.sidebar.code[0].value
    assert all(part in told for part in ("depth=5", "run=good", "passage="))


def test_a_smaller_top_loses_more(visit, stored, labelled):
    app = visit("why.py", run="good")
    counted = []
    for depth in (5, 10, 50):
        app.segmented_control(key="depth").set_value(depth).run()
        assert not app.exception
        counted.append(max(int(n) for n in re.findall(r"(\d) of 3 relevant passages in the top", html(app))))
    assert counted == sorted(counted)


def test_routes_without_a_ranking_are_told_with_their_reason(visit, stored, labelled):
    page = html(visit("why.py", run="bad"))
    assert "3 routes have no ranking" in page
    assert "KeyError: &#39;weights&#39;" in page
    assert "out of time" in page


def test_hostile_text_is_shown_as_text(visit, stored, monkeypatch):
    run = stored["evil"]
    gold = {run.results[0].hits[at].passage.id: 2 for at in (0, 3, 20)}
    monkeypatch.setattr("ui.components.gold.gold_grades", lambda _: gold)
    app = visit("why.py", run="evil")
    for mark in ("<img", "<script", "<svg", 'onmouseover="alert'):
        assert mark not in html(app)
    assert "&lt;img src=http://evil.example/x.png" in html(app)
    assert HOSTILE[0].split()[0] in html(app).replace("&lt;", "<")


def test_a_passage_no_route_found_is_looked_for_in_the_corpus(visit, stored, engine):
    corpus = engine.corpus("tiny")
    passage = corpus.all[0]
    app = visit("why.py", run="good")
    app.text_input(key="why_find").set_value(passage.id).run()
    app.radio(key=f"why_found:{passage.id}").set_value(passage.id).run()
    assert not app.exception
    assert app.selectbox(key="passage").value == passage.id
    assert "No list in this run contains it." in html(app)
    assert "Computed from the current index" in html(app)
    again = reopened(visit, passage=passage.id)
    assert again.selectbox(key="passage").value == passage.id


def test_a_run_whose_routes_found_nothing_says_so(visit, engine):
    run = make_run(mishaps=False, run_id="empty", corpus="tiny")
    none = tuple(replace(result, hits=(), spans=()) for result in run.results)
    engine.store.save(replace(run, results=none))
    assert engine.store.flush()
    assert "No route in this run found a passage" in shown(visit("why.py", run="empty"))
