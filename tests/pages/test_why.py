"""The page that says why routes lost: diagnoses, fates in words, ranks step by step."""

import re
from dataclasses import replace

import pytest
from markupsafe import escape

from core.analysis.passage_trace import PassageTrace
from core.domain.relevance import relevant
from core.evaluation.dataset import Question
from core.evaluation.gold import Gold
from core.evaluation.labels import desk
from tests.pages.reading import html, shown
from tests.runs import make_run


def reopened(visit, **view):
    """The page as a link opens it: with all of the view in its address."""
    return visit("why.py", run="good", **view)


@pytest.fixture
def labelled(monkeypatch, stored):
    """Grades of three passages of the good run: in the tops, low, and in no list."""
    run = stored["good"]
    hits = run.results[0].hits
    gold = {hits[0].passage.id: 3, hits[20].passage.id: 2, "nowhere.md:0-9": 2, hits[5].passage.id: 1}
    monkeypatch.setattr("ui.components.gold.gold_of", lambda _: Gold(gold))
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
    assert "inferred, not labelled" in shown(app)
    assert page.index("relevant passages in their top") < page.index("Lost at")
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


def test_without_labels_no_route_is_judged_and_a_hit_can_be_marked(visit, stored, engine):
    app = visit("why.py", run="good")
    assert "Mark the passage you expected" in html(app)
    for verdict in ("Lost at", "✕", 'class="bad"', "rs-why-lost"):
        assert verdict not in html(app)
    button = next(one for one in app.button if one.key.startswith("why_expected:"))
    button.click().run()
    assert not app.exception
    (made,) = desk.sets(engine.store)
    (grade,) = desk.load(engine.store, made.name).current
    assert (grade.passage, grade.grade) == (button.key.removeprefix("why_expected:"), 3)
    app.button(key="why_undo").click().run()
    assert desk.sets(engine.store) == ()


def test_a_passage_nobody_expected_is_followed_without_a_verdict(visit, stored):
    id = stored["good"].results[0].hits[7].passage.id
    page = html(reopened(visit, passage=id, depth="5"))
    assert "Rank after each step" in page
    assert "✕" not in page
    assert 'class="bad"' not in page


def test_a_wrong_answer_is_told_though_every_route_found_the_passage(visit, engine):
    run = make_run(mishaps=False, run_id="told", corpus="tiny")
    hit = run.results[0].hits[0]
    results = tuple(
        replace(one, hits=(hit,), answer=text, citations=(hit.passage.id,))
        for one, text in zip(run.results[:2], ("30 days [1].", "45 days [1]."), strict=True)
    )
    engine.store.save(replace(run, results=results))
    assert engine.store.flush()
    question = Question("q", run.query, answers=("30 days",), answerable=True)
    with pytest.MonkeyPatch.context() as patch:
        known = Gold({hit.passage.id: 3}, questions=(question,))
        patch.setattr("ui.components.gold.gold_of", lambda _: known)
        app = visit("why.py", run="told")
        page = html(app)
        assert "2 of 2 routes have the relevant passage in their top 10, but 1 of 2 answers is wrong" in page
        app.button(key=f"why_wrong:{results[0].route}").click().run()
    (made,) = desk.sets(engine.store)
    (reported,) = desk.load(engine.store, made.name).questions
    assert [one.failure for one in reported.complaints] == ["wrong answer"]


def test_a_link_reopens_the_passage_and_depth(visit, stored):
    id = stored["good"].results[0].hits[7].passage.id
    app = reopened(visit, passage=id, depth="5")
    assert app.selectbox(key="passage").value == id
    assert app.segmented_control(key="depth").value == 5
    assert re.search(r"\d of 8 routes have it in their top 5", html(app))
    app.session_state["link_here"] = True
    told = app.run().sidebar.code[0].value
    assert all(part in told for part in ("depth=5", "run=good", "passage="))


def test_routes_without_a_ranking_are_told_with_their_reason(visit, stored, labelled):
    page = html(visit("why.py", run="bad"))
    assert "3 routes have no ranking" in page
    assert "KeyError: &#39;weights&#39;" in page
    assert "out of time" in page


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
    assert "No route found a passage" in shown(visit("why.py", run="empty"))
