"""Filling the pool, and what a model suggests: in the background, stopped, failing, without asking again."""

import threading
from dataclasses import replace

import pytest

from core.domain.errors import BadInput, ModelFailed, Unavailable
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Turn
from core.engine.request import Request
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import Evaluation
from core.evaluation.labels import desk as desks
from core.evaluation.labels import pool as module
from core.evaluation.labels import suggest
from core.evaluation.labels.final import final
from core.evaluation.labels.pool import Added, from_evaluation, from_runs
from core.evaluation.outcome import Outcome
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM

QUESTIONS = (
    Question("q1", Query("How do I send a fragile item back?")),
    Question("q2", Query("What do I do now?", (Turn("user", "My box arrived crushed."),))),
    Question("q3", Query("Does customs hold a parcel for the invoice?")),
)


def grading(request):
    """Photos: surely; customs: fails; fragile: neither yes nor no; else what the words say."""
    said = request.messages[-1].content
    if "Customs may hold" in said:
        raise ModelFailed("the model refused")
    if "Fragile items" in said:
        return {"Maybe": 1.0}
    return "0.9" if "photos" in said else "0.3"


@pytest.fixture
def engine(tmp_path, store_place):
    store = Store(store_place)
    made = FakeEngine(tmp_path, llm=ScriptedLLM({"grade": grading}), store=store)
    desks.create(store, "set", "tiny", QUESTIONS)
    yield made
    store.close()


def pool_of(engine, question="q1"):
    return desks.load(engine.store, "set").pool[question]


def test_every_route_is_asked_every_question_and_nothing_is_stored(engine):
    pooling = module.begin(engine, "set", ("bm25", "dense"), depth=2)
    assert module.under_way(engine, "set") is pooling
    assert pooling.wait(20)
    assert (pooling.finished, pooling.total, pooling.error, pooling.cancelled) == (3, 3, None, False)
    desk = desks.load(engine.store, "set")
    assert pooling.new == sum(map(len, desk.pool.values()))
    for question in QUESTIONS:
        run = engine.ask(Request(question.query, "tiny", ("bm25", "dense"), stored=False))
        expected = {}
        for result in run.results:
            for rank, hit in enumerate(result.hits[:2], 1):
                expected.setdefault(hit.passage, {})[result.route] = rank
        assert {one.passage: dict(one.found) for one in desk.pool[question.id].values()} == expected
    assert engine.store.sessions() == []


def test_pooling_with_more_routes_adds_and_loses_nothing(engine):
    assert module.begin(engine, "set", ("bm25",), depth=2).wait(20)
    before = pool_of(engine)
    desks.judge(engine.store, "set", Judgement("q1", next(iter(before)), "Ann", "person", "grade", 3))
    again = module.begin(engine, "set", ("bm25", "dense"), depth=5)
    assert again.wait(20)
    after = pool_of(engine)
    assert set(before) < set(after)
    assert all(dict(one.found).items() <= dict(after[id].found).items() for id, one in before.items())
    assert len(desks.load(engine.store, "set").by("Ann")) == 1
    third = module.begin(engine, "set", ("bm25", "dense"), depth=5)
    assert third.wait(20)
    assert (third.new, pool_of(engine)) == (0, after)


def test_a_route_that_fails_is_counted_and_an_error_ends_it(engine, monkeypatch):
    engine.fake_llm.replies = {"hyde": ModelFailed("no such thing")}
    pooling = module.begin(engine, "set", ("bm25", "hyde"))
    assert pooling.wait(20)
    assert (dict(pooling.failed), pooling.finished) == ({"hyde": 3}, 3)
    assert "no such thing" in pooling.why["hyde"]
    monkeypatch.setattr(type(engine), "start", lambda *_: (_ for _ in ()).throw(Unavailable("gone")))
    broken = module.begin(engine, "set", ("bm25",))
    assert broken.wait(20)
    assert (broken.error, broken.done) == ("gone", True)


def test_what_cannot_be_pooled_is_refused_by_name(engine):
    for depth in (0, 101, True):
        with pytest.raises(BadInput, match="give 1 to 100"):
            module.begin(engine, "set", depth=depth)
    with pytest.raises(BadInput, match="no label set 'other'"):
        module.begin(engine, "other")
    with pytest.raises(BadInput, match="unknown route"):
        module.begin(engine, "set", ("nothing",))
    engine.fake_llm.missing = "no model is set up"
    with pytest.raises(Unavailable, match="the model cannot suggest grades: no model is set up"):
        suggest.begin(engine, "set")
    engine.store = None
    with pytest.raises(Unavailable, match="not stored here"):
        module.begin(engine, "set")


# --- without asking


def result(route, *ids, status="ok"):
    hits = tuple(Hit(Passage(id, "d", id, f"Text of {id}."), 1.0) for id in ids)
    return RouteResult(route, route, status, 1.0, hits=hits)


def run(query, *results, corpus="tiny", id="r1"):
    passages = {hit.passage.id: hit.passage for one in results for hit in one.hits}
    return Run(id, "2026-01-01", query, corpus, "f", {}, results, passages)


def test_stored_runs_fill_the_pool_where_they_asked_the_same_after_the_same_turns(engine):
    runs = [
        run(QUESTIONS[0].query, result("x", "a", "b")),
        run(QUESTIONS[0].query, result("x", "b"), result("y", "c")),
        run(QUESTIONS[1].query, result("x", "d")),
        run(Query(QUESTIONS[1].query.text), result("x", "e")),
        run(Query("Another?"), result("x", "f")),
    ]
    assert from_runs(engine.store, "set", runs, depth=5) == Added(4, 2, 2)
    assert {id: one.found for id, one in pool_of(engine).items()} == {
        "a": (("x", 1),),
        "b": (("x", 2),),
        "c": (("y", 1),),
    }
    assert set(pool_of(engine, "q2")) == {"d"}
    with pytest.raises(BadInput, match="run r1 is over corpus other, and label set set over tiny"):
        from_runs(engine.store, "set", [replace(runs[0], corpus="other")])


def evaluation(tmp_path, outcomes, corpus="tiny", routes=("x", "y")):
    asked = (replace(QUESTIONS[0], id="other id"), Question("z", Query("Another?")))
    labelled = LabelledSet("tiny", asked, {})
    return Evaluation("e", tmp_path, {"corpus": corpus}, labelled, outcomes, {"routes": list(routes)})


def test_an_evaluation_fills_the_pool_without_asking(engine, tmp_path):
    known = list(TEXTS)
    hits = ((known[0], 3.0), (known[1], 2.0), ("gone:0-9", 1.0))
    outcomes = {
        "other id": {
            "x": Outcome("ok", 1.0, hits),
            "y": Outcome("ok", 1.0, ((known[1], 1.0),)),
            "broken": Outcome("failed", 1.0, ((known[3], 1.0),)),
        },
        "z": {"x": Outcome("ok", 1.0, hits)},
    }
    opened = evaluation(tmp_path, outcomes)
    corpus = engine.corpus("tiny")
    assert from_evaluation(engine.store, "set", opened, corpus) == Added(2, 1, 1, 1)
    assert {id: one.found for id, one in pool_of(engine).items()} == {
        known[0]: (("x", 1),),
        known[1]: (("x", 2), ("y", 1)),
    }
    assert pool_of(engine)[known[0]].passage == corpus.by_ids([known[0]])[known[0]]
    with pytest.raises(BadInput, match="evaluation e has no route 'q'; it has: x, y"):
        from_evaluation(engine.store, "set", opened, corpus, names=("q",))
    with pytest.raises(BadInput, match="over corpus other"):
        from_evaluation(engine.store, "set", evaluation(tmp_path, outcomes, "other"), corpus)


def test_a_passage_that_is_gone_has_its_text_from_the_evaluations_run(engine, tmp_path):
    with_run = run(QUESTIONS[0].query, result("x", "gone:0-9"), id="kept")
    kept = Store(tmp_path / "runs.sqlite")  # where an evaluation keeps them
    kept.save(with_run)
    assert kept.flush()
    outcomes = {"other id": {"x": Outcome("ok", 1.0, (("gone:0-9", 1.0),), run="kept")}}
    found = from_evaluation(engine.store, "set", evaluation(tmp_path, outcomes), engine.corpus("tiny"))
    assert found == Added(1, 1)
    assert pool_of(engine)["gone:0-9"].passage.text == "Text of gone:0-9."
    kept.close()


# --- what a model suggests


def pooled(engine):
    passages = engine.corpus("tiny").all
    desks.add_to_pool(engine.store, "set", {"q2": [Pooled(one) for one in passages]})
    return desks.load(engine.store, "set")


def test_suggestions_are_the_models_and_a_failure_is_no_grade(engine):
    pooled(engine)
    made = suggest.begin(engine, "set")
    assert made.wait(20)
    assert (made.error, made.scored, made.unscored, made.total) == (None, len(TEXTS) - 2, 2, len(TEXTS))
    desk = desks.load(engine.store, "set")
    assert (desk.models(), desk.annotators()) == (("model:scripted",), ())
    given = {passage: one for (_, passage), one in desk.by("model:scripted").items()}
    assert given["crushed:0-80"].grade == 3
    assert given["crushed:0-80"].note == "P(Yes) 0.90 that the passage states the answer"
    assert {one.grade for id, one in given.items() if id != "crushed:0-80"} == {1}
    assert {passage for _, passage in made.why} == {"customs:0-80", "fragile:0-80"}
    assert set(given) == set(TEXTS) - {"customs:0-80", "fragile:0-80"}
    assert made.why["q2", "customs:0-80"] == "the model refused"
    assert "neither Yes nor No" in made.why["q2", "fragile:0-80"]
    assert all(one.grade is None for one in final(desk).values()), "they count for nothing"
    asked = len(engine.fake_llm.requests)
    again = suggest.begin(engine, "set")
    assert again.wait(20)
    assert (again.total, again.unscored) == (2, 2), "only what has none is asked again"
    assert len(engine.fake_llm.requests) - asked <= 4


def test_suggesting_can_be_stopped(engine):
    pooled(engine)
    going = threading.Event()

    def slow(_request):
        going.set()
        return "0.9"

    engine.fake_llm.replies, engine.fake_llm.delay = {"grade": slow}, 0.3
    made = suggest.begin(engine, "set")
    assert going.wait(20)
    made.cancel()
    assert made.wait(20)
    assert made.cancelled
    assert made.error is None
    assert made.scored == len(desks.load(engine.store, "set").by("model:scripted")) < made.total
    assert made.unscored == 0, "a stop is no failure"


def test_a_probability_is_relevant_from_one_half():
    values = (0.0, 0.249, 0.25, 0.499, 0.5, 0.75, 1.0)
    assert [suggest.graded(value) for value in values] == [0, 0, 1, 1, 2, 3, 3]


def test_small_talk_is_not_asked_and_controls_find_nothing(engine):
    asked = [Question("talk", Query("lol ok"), mode="no_retrieval"), Question("real", Query("a parcel"))]
    assert [one.id for one in module.worth_labelling(asked)] == ["real"]
    usual = module.defaults(engine, "tiny")
    assert {"bm25", "dense", "hybrid_rrf"} <= {*usual}
    assert not {"noise", "hyde"} & {*usual}
