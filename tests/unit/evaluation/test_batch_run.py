"""Routes over all labelled questions without storing the runs, and what a change does to their metrics."""

import threading

import pytest

from core.analysis.metrics import by_question, titled
from core.analysis.what_if.fusion import fusions, outcome, recompute
from core.corpus import catalogue
from core.corpus.chunk import WHOLE
from core.corpus.source import Source
from core.domain.background_job import Jobs
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Query, RouteResult, Span
from core.engine.job import Job
from core.evaluation import sets
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.tuning import batch_run as module
from core.evaluation.tuning.batch_run import (
    SHOWN,
    after,
    base,
    begun,
    compare,
    counted,
    seconds,
    survey,
)
from core.store import Store
from tests.fakes import FakeEngine, ScriptedLLM

QUESTIONS = (
    Question("q1", Query("How do I send a fragile item back?"), split="dev"),
    Question("q2", Query("When is the refund of the returned item paid?"), split="dev"),
    Question("q3", Query("Does customs hold a parcel for the invoice?"), split="test"),
    Question("q4", Query("What is the weather?"), split="test"),
)
QRELS = {"q1": {"fragile:0-80": 2, "returns:0-90": 3}, "q2": {"returns:90-180": 3}, "q3": {"customs:0-80": 2}}
LABELS = LabelledSet("tiny", QUESTIONS, QRELS, 2)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "jobs", Jobs())
    monkeypatch.setattr(catalogue, "source", lambda *_, **__: Source("tiny", "indexed", None, WHOLE))
    monkeypatch.setattr(sets, "read", lambda *_, **__: LABELS)
    made = FakeEngine(tmp_path, store=Store(tmp_path / "runs.sqlite"))
    yield made
    made.store.close()


def test_every_question_is_asked_and_nothing_is_stored(engine):
    found = survey(engine, "tiny", {"hybrid_rrf": {"k": 7}, "bm25": {}})
    assert found.wait(20)
    assert (found.finished, found.total, found.error, found.complete) == (4, 4, None, True)
    assert found.labelled == LABELS
    assert set(found.results) == {"q1", "q2", "q3", "q4"}
    result = found.results["q1"]["hybrid_rrf"]
    assert (result.status, result.parameters["k"]) == ("ok", 7)
    assert fusions(result)[0].values["k"] == 7
    assert engine.store.flush()
    assert engine.store.sessions() == []
    assert not any(isinstance(job, Job) for job in module.jobs.known())


def test_equal_surveys_are_one_and_errors_end_one(engine, monkeypatch):
    first = survey(engine, "tiny", {"bm25": {}})
    assert first.wait(20)
    assert survey(engine, "tiny", {"bm25": {"engine": "bm25s"}}) is first, "the default by name"
    assert begun(engine, "tiny", {"bm25": {}}) is first
    assert begun(engine, "tiny", {"dense": {}}) is None
    assert survey(engine, "tiny", {"bm25": {}, "dense": {}}) is not first
    assert (
        survey(engine, "tiny", {"hybrid_rrf": {"k": 1}}).name
        != survey(engine, "tiny", {"hybrid_rrf": {}}).name
    )

    def broken(*_):
        raise Unavailable("the index is gone")

    monkeypatch.setattr(type(engine), "start", broken)
    found = survey(engine, "tiny", {"dense": {}})
    assert found.wait(20)
    assert (found.error, found.complete) == ("the index is gone", False)


def test_it_can_be_stopped_and_begun_again(engine, monkeypatch):
    going, go_on = threading.Event(), threading.Event()
    start = type(engine).start

    def slow(self, request):
        going.set()
        assert go_on.wait(20)
        return start(self, request)

    monkeypatch.setattr(type(engine), "start", slow)
    found = survey(engine, "tiny", {"dense": {}})
    assert going.wait(20)
    assert not found.done
    assert survey(engine, "tiny", {"dense": {}}) is found
    found.cancel()
    go_on.set()
    assert found.wait(20)
    assert (found.finished, found.cancelled, found.complete) == (0, True, False)
    again = survey(engine, "tiny", {"dense": {}})
    assert again is not found
    assert again.wait(20)
    assert again.complete


def test_routes_that_may_ask_a_model_and_corpora_without_labels_are_refused(engine, monkeypatch):
    with pytest.raises(
        BadInput, match=r"rewrite may call a language model .* python -m core eval tiny --routes"
    ):
        survey(engine, "tiny", {"bm25": {}, "rewrite": {}})
    with pytest.raises(BadInput, match="unknown route 'x'"):
        survey(engine, "tiny", {"x": {}})
    engine.fake_llm = ScriptedLLM(missing="no model")
    with pytest.raises(Unavailable, match="contextual cannot run"):
        survey(engine, "tiny", {"contextual": {}})

    def none(*_, **__):
        raise BadInput("nothing there")

    monkeypatch.setattr(sets, "read", none)
    with pytest.raises(BadInput, match=r"no labelled questions.*--questions FILE.*nothing there"):
        survey(engine, "tiny", {"bm25": {}})


def test_the_time_is_told_without_a_model_and_own_passages_are_no_results():
    spans = (
        Span(1, None, "rewrite", "LLM", 0, 900, calls=1),
        Span(2, None, "grade", "EVALUATOR", 900, 500),
        Span(3, 2, "ask", "LLM", 900, 500, calls=1),
        Span(4, None, "search", "RETRIEVER", 1400, 15, hits=()),
        Span(5, None, "fuse", "CHAIN", 1415, 5, hits=()),
    )
    assert seconds(RouteResult("a", "A", "ok", 1420, spans=spans), 100) == 2.0
    hits = (("q1", 2.0), ("a", 1.0))
    assert counted(LABELS, "q1", hits) == hits
    dropping = LabelledSet("x", QUESTIONS, {"q1": {"a": 1}, "q2": {"q2": 1}}, drop_self=True)
    assert counted(dropping, "q1", hits) == (("a", 1.0),)
    assert counted(dropping, "q2", (("q2", 1.0),)) == (("q2", 1.0),)


CHANGES = {"k": 1, "weights.0": 0.0}


def test_the_effect_is_that_of_running_the_route_with_those_parameters(engine):
    parameters = {"k": 1, "bm25_weight": 0.0}
    old, new = survey(engine, "tiny", {"hybrid_rrf": {}}), survey(engine, "tiny", {"hybrid_rrf": parameters})
    assert old.wait(20)
    assert new.wait(20)
    (fusion,) = fusions(old.results["q1"]["hybrid_rrf"])
    found = base(old, "hybrid_rrf", fusion, ranks=True)
    assert list(found.asked) == ["q1", "q2", "q3"]
    assert (found.failed, found.unlabelled) == (0, 1)

    def measured(done):
        ids = ("q1", "q2", "q3")
        rankings = {
            id: tuple((h.passage.id, h.score) for h in done.results[id]["hybrid_rrf"].hits) for id in ids
        }
        return by_question(QRELS, rankings, relevant_from=2)

    before, then = measured(old), measured(new)
    assert found.before == before
    assert after(found, "hybrid_rrf", CHANGES, list(found.asked)) == then
    assert after(found, "hybrid_rrf", {}, ["q2"]) == {"q2": before["q2"]}
    told = compare(found.before, then)
    assert [change.metric for change in told] == [titled(name) for name in SHOWN]
    for metric, change in zip(SHOWN, told, strict=True):
        values = [(before[id][metric], then[id][metric]) for id in then]
        assert change.before == pytest.approx(sum(a for a, _ in values) / 3)
        assert change.before + change.estimate == pytest.approx(sum(b for _, b in values) / 3)
        assert (change.wins, change.losses) == (sum(b > a for a, b in values), sum(b < a for a, b in values))
        low, high = change.interval
        assert low <= change.estimate <= high
        assert change.shown == (low > 0 or high < 0)


def test_a_list_that_is_ordered_again_is_measured_as_it_is(engine):
    found = survey(engine, "tiny", {"rerank": {}})
    assert found.wait(20)
    result = found.results["q2"]["rerank"]
    (fusion,) = fusions(result)
    assert outcome(result, fusion, fusion.span.hits).hits is None
    known = base(found, "rerank", fusion, ranks=False)
    assert known.before["q2"] == by_question(QRELS, {"q2": fusion.span.hits}, relevant_from=2)["q2"]
    changed = recompute(fusion, {"weights.1": 0.0})
    assert (
        after(known, "rerank", {"weights.1": 0.0}, ["q2"])["q2"]
        == (by_question(QRELS, {"q2": changed}, relevant_from=2)["q2"])
    )


def test_no_difference_is_shown_where_nothing_changes():
    same = {str(n): dict.fromkeys(SHOWN, n / 50) for n in range(40)}
    for change in compare(same, same):
        low, high = change.interval
        assert low == pytest.approx(-high)
        assert (change.estimate, change.wins, change.losses) == (0.0, 0, 0)
        assert not change.shown
    better = {id: {name: value + 0.1 for name, value in row.items()} for id, row in same.items()}
    assert all(change.shown and change.wins == 40 for change in compare(same, better))
    few = {id: better[id] for id in list(better)[:9]}
    assert not any(change.shown for change in compare(same, few))  # of few questions any other may lose
    alone = {"0": same["0"]}
    assert compare(same, alone)[0].interval == (-1.0, 1.0)
