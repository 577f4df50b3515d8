"""The queue on Label in the order that settles a decision, as a link opens it."""

from dataclasses import replace
from math import log2

import pytest

from core.domain.types import Passage, Query
from core.evaluation import experiment_store
from core.evaluation.dataset import Question
from core.evaluation.judge.correction import corrected
from core.evaluation.labels import desk as desks
from core.evaluation.labels import draw, label_next, preferences
from core.evaluation.labels.settled import contest
from core.store.labels import Judgement, Pooled
from tests.pages.reading import address, html, shown
from tests.released import evaluation, outcome


@pytest.fixture
def ready(engine):
    """q0 is the same for both routes, q1 not at all, q2 by the place of one passage."""
    made = evaluation(
        experiment_store.place(engine.settings, "close"),
        {"bm25": [outcome(1), outcome(1), outcome(2)], "dense": [outcome(1), outcome(None), outcome(3)]},
        alike=True,
    )
    corpus = engine.corpus("tiny")

    class WithAll:
        name = "tiny"

        def by_ids(self, ids, /):
            known = corpus.passages([0])[0]
            return {id: replace(known, id=id) for id in ids}

        def document(self, id, /):
            return corpus.document(id)

    return label_next.begin(engine.store, made, "bm25", "dense", WithAll())


def test_the_questions_that_decide_come_first_and_the_usual_order_is_one_click_away(visit, engine, ready):
    app = visit("label.py", set=ready[0], order="close~bm25~dense")
    assert "The questions that decide most between BM25 and Dense in evaluation close come first" in shown(
        app
    )
    desk = desks.load(engine.store, ready[0])
    assert address(app, "question") == ready[1][0]
    assert address(app, "order") == "close~bm25~dense"
    next(one for one in app.button if one.key == "label_usual").click().run()
    assert not app.exception
    assert address(app, "question") == desk.questions[0].id
    assert address(app, "order") is None


def test_an_order_of_an_evaluation_that_is_gone_is_the_usual_one(visit, engine, ready):
    app = visit("label.py", set=ready[0], order="gone~bm25~dense")
    assert not app.exception
    assert address(app, "question") == desks.load(engine.store, ready[0]).questions[0].id
    assert "Evaluation gone cannot be opened, so the questions are in their usual order." in shown(app)


def test_the_passages_that_routes_rank_apart_come_first_for_a_given_effort(visit, engine, ready):
    desk = desks.load(engine.store, ready[0])
    first = contest(desk).order()[0]
    whole = label_next.order_for(desk, "me", most=1)
    assert whole[0] == first
    assert sorted(whole) == sorted(label_next.order_for(desk, "me"))
    app = visit("label.py", set=ready[0], minutes="15")
    assert not app.exception
    assert "Passages on which routes differ most come first" in shown(app)
    assert "Shipping a route takes 25 questions" in shown(app)
    assert address(app, "minutes") == "15"


def test_the_pace_of_an_annotator_is_measured_without_pauses(engine, ready):
    desk = desks.load(engine.store, ready[0])
    assert label_next.seconds_a_grade(desk, "me") is None
    pair = next((q, id) for q, pool in desk.pool.items() for id in pool)
    said = tuple(
        Judgement(
            *pair, "me", "person", "grade", 1, created=f"2026-01-01T10:{n // 15:02}:{4 * n % 60:02}+00:00"
        )
        for n in range(20)
    )
    late = Judgement(*pair, "me", "person", "grade", 1, created="2026-01-01T12:00:00+00:00")
    assert label_next.seconds_a_grade(replace(desk, judgements=(*said, late)), "me") == 4.0


def clear(engine):
    """BM25 shows the one relevant passage first, dense at rank 10; 30 questions of 3 passages."""
    asked = [Question(f"q{n}", Query(f"Question {n}?")) for n in range(30)]
    desks.create(engine.store, "clear", "tiny", asked)
    ranks = {"gold": (("bm25", 1), ("dense", 10)), "one": (("dense", 1),), "two": (("bm25", 10),)}
    pool = {one.id: [Pooled(Passage(id, "doc", "", id), at) for id, at in ranks.items()] for one in asked}
    desks.add_to_pool(engine.store, "clear", pool)
    return asked


def test_the_order_can_be_drawn_before_the_first_grade(visit, engine):
    clear(engine)
    app = visit("label.py", set="clear", minutes="15")
    next(one for one in app.button if one.key == "label_draw").click().run()
    assert not app.exception
    drawn = desks.load(engine.store, "clear").drawn
    assert address(app, "question") == drawn[0]
    assert len(drawn) == 30
    assert "come in the order that was drawn" in shown(app)
    assert all(one.key != "label_draw" for one in app.button)
    assert draw.ahead(desks.load(engine.store, "clear")) is None
    for id in drawn[:12]:
        said = [Judgement(id, one, "anna", "person", "grade", 3 * (one == "gold")) for one in ("gold", "one")]
        desks.judge_all(engine.store, "clear", said)
    half, later = draw.ahead(desks.load(engine.store, "clear"))
    asked = desks.load(engine.store, "clear").asked
    places = [asked[id].drawn for id in drawn]
    weights = [12 / 30 * max(1.0, places[12].key / one.size) for one in places[:12]]
    apart = [1 - 1 / log2(11)] * 12
    most = max(weight * one.size for weight, one in zip(weights, places, strict=False))
    low, high = corrected(apart, [0.0] * 12, [], weights, most=most, paired=True).ci95
    assert half == pytest.approx((high - low) / 2)
    assert later < half
    app = visit("label.py", set="clear", minutes="15")
    assert f"from ±{half:.3f} to about ±{later:.3f} nDCG@10" in shown(app)


def test_it_says_when_more_grades_would_hardly_change_the_best_route(visit, engine):
    asked = clear(engine)
    opened = {"set": "clear", "minutes": "15", "annotator": "anna"}
    assert "You can stop" not in shown(visit("label.py", **opened))
    for one in asked[:28]:
        for id in ("gold", "one"):
            said = Judgement(one.id, id, "anna", "person", "grade", int(id == "gold"))
            desks.judge(engine.store, "clear", said)
    app = visit("label.py", **opened)
    assert "You can stop: more grades would hardly change which route is best (34 left)." in shown(app)
    assert not app.exception
    second = shown(visit("label.py", **{**opened, "minutes": "-1", "annotator": "bert"}))
    assert "No single grade of others would change the decision" in second


def test_two_routes_are_compared_without_their_names_and_an_undo_shows_the_last_again(visit, engine):
    clear(engine)
    app = visit("label.py", set="clear", tab="Pairs", annotator="anna")
    said = desks.load(engine.store, "clear")
    (first, second, *_) = order = preferences.matchups(said, ("bm25", "dense"))
    assert len(order) == 30
    assert f"{said.asked[first.question].query.text}<" in html(app)
    assert not any(name in html(app) for name in ("BM25", "Dense"))

    def press(name):
        next(one for one in app.button if one.key == f"label_pair_{name}").click().run()
        assert not app.exception
        return desks.load(engine.store, "clear").preferences("anna")

    (kept,) = press("left")
    assert (kept.question, kept.kind, desks.routes_of(kept)) == (first.question, "left", first.sides("anna"))
    assert f"{said.asked[second.question].query.text}<" in html(app)
    assert [one.kind for one in press("neither")] == ["left", "neither"]
    assert len(press("undo")) == 1
    assert f"{said.asked[second.question].query.text}<" in html(app)
    for one in order[1:]:
        left = one.sides("anna")[0] == "bm25"
        desks.judge(engine.store, "clear", one.judged("anna", "left" if left else "right"))
    app = visit("label.py", set="clear", tab="Pairs", annotator="anna")
    assert "30 of 30 compared by you" in shown(app)
