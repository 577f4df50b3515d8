"""Questions that people complained of, before each release: passed, broken, not to be told, and named."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from core.api import gating
from core.domain import settings as settings_module
from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.domain.types import Passage, Query
from core.engine import engine as engine_module
from core.engine.request import Request
from core.evaluation.dataset import Complaint, LabelledSet, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import run_labels
from core.evaluation.labels.final import labelled_set
from core.evaluation.labels.run_labels import Report
from core.evaluation.release import regressions
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import decide
from core.evaluation.release.measured import of_evaluation
from core.evaluation.release.regressions import Regressions, checked, regressed
from core.evaluation.release.report import report as written
from core.store import Store
from tests.fakes import FakeEngine
from tests.released import evaluation, failed, outcome

ANN = Complaint("ann", "ranked too low", "run1", "bm25", "gold")


def one(*, complaints=(ANN,), **more):
    return Question("q0", Query("where is it?"), complaints=complaints, **more)


def labelled(question, **qrels):
    return LabelledSet("set", (question,), {"q0": qrels} if qrels else {}, 2)


def check(question, result, depth=10, **qrels):
    return checked(question, result, labelled(question, **qrels), depth)


def test_a_wanted_passage_in_the_first_ten_passes_and_below_breaks():
    found = check(one(), outcome(10), gold=3)
    assert (found.state, found.rank, found.wanted) == ("passed", 10, ("gold",))
    broken = check(one(), outcome(10), depth=5, gold=3)
    assert (broken.state, broken.why) == ("broken", "gold is at rank 10, wanted in the first 5")
    assert check(one(), outcome(None), gold=3).why == "gold is not found, wanted in the first 10"
    assert broken.in_words() == (
        "q0 “where is it?”: gold is at rank 10, wanted in the first 5 (reported as ranked too low by ann)"
    )
    assert check(one(), outcome(2), other0=3, other9=3).state == "passed"
    assert check(one(), outcome(2), lost1=3, lost2=3).state == "broken"
    found = check(one(), failed("no model"), gold=3)
    assert (found.state, found.why) == ("broken", "the route failed: no model")


def test_each_passage_that_somebody_named_is_wanted():
    other = replace(ANN, who="bob", failure="not found", passage="other0")
    both = one(complaints=(ANN, other))
    assert check(both, outcome(2), gold=3, other0=3).state == "passed"
    found = check(both, outcome(None), gold=3, other0=3)
    assert (found.state, found.failures, found.who) == (
        "broken",
        ("ranked too low", "not found"),
        ("ann", "bob"),
    )
    # one whose grade was taken back is not wanted any more
    assert check(both, outcome(None), gold=0, other0=3).state == "passed"


def test_what_cannot_be_told_is_named_and_does_not_fail(main_evaluation):
    assert check(one(), outcome(1)).why == "the corpus no longer has the passage that should be found"
    nothing = one(complaints=(replace(ANN, passage=""),))
    assert check(nothing, outcome(1)).why == "no passage and no gold answer is given; add one on Label"
    assert check(one(), None, gold=3).why == "it was not asked"
    row = check(one(), None, gold=3)
    decision = replace(
        decide(of_evaluation(main_evaluation), Criteria()), regressions=Regressions("set", "bm25", 10, (row,))
    )
    assert not decision.broken
    assert "1 cannot be determined" in " ".join(decision.sentences)


DAYS = {"answers": ("42 days",)}


@pytest.mark.parametrize(
    ("known", "answer", "abstained", "state", "why"),
    [
        (DAYS, "It takes 42 days.", False, "passed", "its answer is right"),
        (DAYS, "It takes 7 days.", False, "broken", "does not hold the gold answer “42 days”"),
        (DAYS, "I cannot say.", True, "broken", "it abstained where there is an answer"),
        (DAYS, None, False, "cannot be told", "no answer was written to check"),
        ({"answerable": False}, "I cannot say.", True, "passed", "it abstained, as it should"),
        ({"answerable": True}, "42 days", False, "passed", "it answered, as it should"),
        ({"answerable": True}, "I cannot say.", True, "broken", "it abstained where there is an answer"),
        ({"answerable": False}, "42 days", False, "broken", "it answered where it should have abstained"),
        ({"answerable": False}, None, False, "cannot be told", "no answer was written to check"),
    ],
)
def test_an_answer_is_checked_where_one_was_written(known, answer, abstained, state, why):
    question = one(complaints=(replace(ANN, passage=""),), **known)
    found = check(question, replace(outcome(1), answer=answer, abstained=abstained))
    assert found.state == state
    assert why in found.why


@pytest.fixture
def main_evaluation(tmp_path):
    by_route = {"bm25": [outcome(1) for _ in range(25)], "dense": [outcome(3) for _ in range(25)]}
    return evaluation(tmp_path / "home" / "evaluations" / "main", by_route)


def set_evaluation(tmp_path, rank):
    """An evaluation of a regression set, in which bm25 finds the wanted passage at `rank`."""
    return evaluation(
        tmp_path / "home" / "evaluations" / "again",
        {"bm25": [outcome(rank)], "dense": [outcome(1)]},
        asked=labelled(one(), gold=3),
    )


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path / "home"))
    with closing(Store(tmp_path / "runs.sqlite")) as store:
        made = FakeEngine(tmp_path, store=store)
        made.settings = made.settings.model_copy(update={"home": tmp_path / "home"})
        monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
        yield made


def test_the_gate_names_what_broke_again_and_exits_with_1(main_evaluation, engine, call, tmp_path):
    set_evaluation(tmp_path, None)
    code, out, _ = call("gate", "main", "--regressions", "again")
    assert code == 1
    assert "Regression set set: BM25 passes 0 of 1 question, 1 broke again." in out
    assert "Broke again: q0 “where is it?”: gold is not found" in out
    assert "(reported as ranked too low by ann)" in out
    code, out, _ = call("gate", "main", "--regressions", "again", "--json")
    document = json.loads(out)
    (row,) = document["regressions"]["results"]
    assert (code, row["state"], row["who"], row["failures"]) == (1, "broken", ["ann"], ["ranked too low"])
    assert document["regressions"]["source"] == "again"


def test_the_gate_passes_where_nothing_broke(main_evaluation, engine, call, tmp_path):
    set_evaluation(tmp_path, 2)
    code, out, _ = call("gate", "main", "--regressions", tmp_path / "home" / "evaluations" / "again")
    assert code == 0
    assert "passes 1 of 1 question, 0 broke again." in out
    assert call("gate", "main")[0] == 0
    decision = gating.gate(main_evaluation, regressions="again")
    assert decision
    assert "0 broke again" in str(decision)


def test_what_is_no_set_no_evaluation_or_of_a_lost_corpus_or_route_is_said(
    main_evaluation, engine, call, tmp_path
):
    set_evaluation(tmp_path, 2)
    code, _, err = call("gate", "main", "--regressions", "nothing")
    assert code == 2
    assert "there are no regressions 'nothing'" in err
    assert "again" in err
    with pytest.raises(BadInput, match="has no route 'mmr'; it has: bm25, dense"):
        regressions.of_evaluation(set_evaluation(tmp_path / "other", 1), "mmr")
    desks.create(engine.store, "old", "vanished", [replace(one(), complaints=(ANN,))])
    with pytest.raises(
        BadInput, match=r"set 'old' is over corpus vanished, which cannot be opened: .*not built"
    ):
        regressions.ask(engine, "old", "bm25", {})


def reported(engine, question, wanted, route="bm25"):
    """A complaint about a run of the engine, as the pages make it."""
    run = engine.ask(Request(Query(question), "tiny", (route,)))
    passage = wanted(run)
    return run_labels.report(
        engine.store, "regressions tiny", Report(run, route, "ranked too low", "ann", passage)
    )


def test_a_set_is_asked_now_with_the_route_to_ship(main_evaluation, engine):
    kept = reported(engine, "How do I send a fragile item back?", lambda run: run.results[0].hits[0].passage)
    found = regressions.ask(engine, kept.set, "bm25", {})
    assert [row.state for row in found.results] == ["passed"]
    assert found.source == ""
    lost = Passage("gone", "gone.md", "Gone", "words that are nowhere", 0, 22)
    reported(engine, "Does customs hold a parcel?", lambda _: lost)
    states = [row.state for row in regressions.ask(engine, kept.set, "bm25", {}).results]
    assert states == ["passed", "cannot be told"]
    stopped = regressions.ask(engine, kept.set, "bm25", {}, ended=lambda: True)
    assert {row.why for row in stopped.results} == {"it was not asked"}
    seen = []
    regressions.ask(engine, kept.set, "bm25", {}, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2, 2)


def test_a_decision_is_given_the_regressions_of_the_route_it_ships(main_evaluation, engine):
    kept = reported(engine, "How do I send a fragile item back?", lambda run: run.results[0].hits[0].passage)
    measured = of_evaluation(main_evaluation)
    measured = replace(measured, figures=measured.figures.model_copy(update={"corpus": "tiny"}))
    decision = decide(measured, Criteria())
    found = regressed(engine, kept.set, measured, decision.shown)
    decision = replace(decision, regressions=found)
    assert (decision.regressions.route, decision.broken) == (decision.chosen, False)
    assert "0 broke again" in written(measured, decision, kind="markdown")
    gone = replace(measured, figures=measured.figures.model_copy(update={"corpus": "elsewhere"}))
    with pytest.raises(BadInput, match="is over corpus tiny, and the evaluation over elsewhere"):
        regressed(engine, kept.set, gone, decide(gone, Criteria()).shown)


def test_sets_without_a_graded_passage_can_be_evaluated_by_their_answers(engine, monkeypatch):
    desks.create(engine.store, "answers", "tiny", [one(answers=("42",), complaints=())])
    found, _ = labelled_set(engine.store, "answers", engine.corpus("tiny"))
    assert found.questions[0].answers == ("42",)
    desks.create(engine.store, "bare", "tiny", [one(complaints=())])
    with pytest.raises(BadInput, match="no graded passage"):
        labelled_set(engine.store, "bare", engine.corpus("tiny"))
