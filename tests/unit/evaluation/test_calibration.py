"""Thresholds chosen on cases, and a model's closed questions on labelled ones: what they are worth."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import bootstrap
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from core.backends.calibrations import DECISIONS
from core.domain.errors import BadInput, Cancelled, ModelFailed
from core.domain.types import Query
from core.evaluation.calibration import (
    LEAST,
    MOST_FAILURES,
    Case,
    _interval,
    calibrate,
    choose,
    chosen,
    gather,
    of_dev,
)
from core.evaluation.dataset import LabelledSet, Question
from scripts.calibrate import fit
from tests.fakes import FakeEngine, ScriptedLLM


def test_by_hand():
    scores = [0.05, 0.10, 0.30, 0.40, 0.60, 0.70, 0.90]
    labels = [False, False, True, False, True, True, True]
    found = fit(scores, labels, precision=1.0, miss_precision=1.0)
    assert found.high == pytest.approx(0.5)
    assert found.low == pytest.approx(0.2)
    assert (found.precision, found.miss_precision, found.n) == (1.0, 1.0, 7)
    looser = fit(scores, labels, precision=0.75, miss_precision=0.75)
    assert looser.high == pytest.approx(0.2)  # 4 of 5 above it are positive
    assert looser.low == pytest.approx(0.2), "low never passes high"


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30),
    st.floats(0.5, 1),
    st.floats(0.5, 1),
)
def test_the_regions_keep_the_wanted_precision_or_are_empty(cases, precision, miss):
    found = fit([s for s, _ in cases], [y for _, y in cases], precision=precision, miss_precision=miss)
    above = [y for s, y in cases if s >= found.high]
    below = [y for s, y in cases if s < found.low]
    assert 0 <= found.low <= found.high <= 1
    if above and found.high < 1:
        assert sum(above) / len(above) >= precision
    if below:
        assert sum(not y for y in below) / len(below) >= miss


def test_nothing_to_fit_on_is_an_error():
    with pytest.raises(BadInput, match="at least one"):
        fit([], [])
    for scores, labels in (([0.1, 0.9], [True]), ([0.9], [True, False])):
        with pytest.raises(BadInput, match=f"{len(scores)} scores and {len(labels)} labels"):
            fit(scores, labels)
    with pytest.raises(BadInput, match="needs both kinds"):
        choose([0.1, 0.5, 0.9], [True, True, True])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=20))
@example([(0.0, False), (5e-324, True)])  # no number lies between them
def test_no_threshold_is_better_than_the_one_chosen(cases):
    scores, labels = [score for score, _ in cases], [label for _, label in cases]
    if len(set(labels)) < 2:
        with pytest.raises(BadInput, match="both kinds"):
            choose(scores, labels, objective="balanced accuracy")
        return
    chosen = choose(scores, labels, objective="balanced accuracy")
    told = balanced_accuracy_score(labels, [score >= chosen for score in scores])
    for other in scores:
        assert balanced_accuracy_score(labels, [score >= other for score in scores]) <= told + 1e-9


NUMBERS = range(1, 31)
TEXTS = {f"p{n}": f"Parcel number {n} is sent from depot {n} on day {n} of the month." for n in NUMBERS}
QUESTIONS = tuple(
    Question(f"q{n}", Query(f"On which day is parcel number {n} sent?"), answers=(f"Day {n}",))
    for n in NUMBERS
)
SMALL_TALK = tuple(Question(f"t{n}", Query(f"Hello, number {n}"), mode="no_retrieval") for n in range(1, 6))


def relevant_to(corpus, question):
    """The passage that names the number asked for."""
    (id,) = [p.id for _, p, _ in corpus.everything() if f"number {question.id[1:]} " in p.text]
    return {id: 1}


@pytest.fixture
def place(tmp_path):
    """An engine whose model says Yes where the passages shown have the number of the question."""

    def says(request):
        text = request.messages[-1].content
        number = re.search(r"parcel number (\d+) sent", text)
        known = number is not None and f"Parcel number {number[1]} is" in text
        return {"Yes": 0.9, "No": 0.1} if known else {"Yes": 0.2, "No": 0.8}

    def look_up(request):
        yes = 0.1 if "Hello" in request.messages[-1].content else 0.8
        return {"Yes": yes, "No": 1 - yes}

    replies = dict.fromkeys(("evidence", "relevant", "claim"), says) | {"look-up": look_up}
    llm = ScriptedLLM({**replies, "closed-answer": lambda _: {"It is sent on day 3.": 0.7}})
    engine = FakeEngine(tmp_path, llm=llm, texts=TEXTS)
    corpus = engine.corpus("tiny")
    qrels = {question.id: relevant_to(corpus, question) for question in QUESTIONS}
    return engine, LabelledSet("parcels", (*QUESTIONS, *SMALL_TALK), qrels), corpus, llm


@pytest.mark.parametrize("decision", ["evidence", "passage relevance", "claim support"])
def test_every_second_case_is_one_whose_right_reply_is_no(place, decision):
    engine, labelled, corpus, _ = place
    cases = gather(engine, labelled, corpus, decision, 24, 1)
    assert len(cases) == 24
    assert 8 <= sum(case.positive for case in cases) <= 12
    assert all((case.score > 0.5) is case.positive for case in cases), "the right passages were shown"
    assert len({case.question for case in cases}) == 24
    assert cases == gather(engine, labelled, corpus, decision, 24, 1), "drawn with the seed"
    assert calibrate(decision, "scripted", cases).auc == 1.0


def test_a_part_of_the_relevant_passages_is_no_case_of_evidence(place):
    engine, _, corpus, llm = place
    one = QUESTIONS[0]
    far = dict.fromkeys([p.id for _, p, _ in corpus.everything()][:12], 1)  # more than are shown
    asked = LabelledSet("parcels", (one,), {one.id: relevant_to(corpus, one) | far})
    assert gather(engine, asked, corpus, "evidence", 5, 1) == ()
    assert not llm.requests


def test_whether_to_look_up_is_asked_of_small_talk_too(place):
    engine, labelled, corpus, _ = place
    cases = gather(engine, labelled, corpus, "look up", 20, 1)
    assert [case.positive for case in cases[:6]] == [False, True] * 3, "these are few, and come early"
    assert sum(not case.positive for case in cases) == 5
    assert calibrate("look up", "scripted", cases).auc == 1.0


def test_an_answer_without_a_search_is_right_or_wrong_as_the_judge_says(place):
    engine, labelled, corpus, _ = place
    cases = gather(engine, labelled, corpus, "closed-book answer", 30, 1)
    assert len(cases) == 30
    assert [case.question for case in cases if case.positive] == ["q3"]
    assert {round(case.score, 3) for case in cases} == {0.7}


def test_a_stop_is_heard_between_questions(place):
    engine, labelled, corpus, llm = place
    with pytest.raises(Cancelled):
        gather(engine, labelled, corpus, "evidence", 24, 1, ended=lambda: len(llm.requests) >= 2)
    assert len(llm.requests) == 2


def test_a_model_that_fails_again_and_again_is_given_up(place):
    engine, labelled, corpus, llm = place
    warned = []
    llm.replies = {"evidence": ModelFailed("out of memory")}
    with pytest.raises(ModelFailed):
        gather(engine, labelled, corpus, "evidence", 24, 1, warn=warned.append)
    assert len(warned) == MOST_FAILURES + 1


def test_every_decision_can_be_calibrated_and_no_other_is_known():
    assert chosen(None) == DECISIONS
    assert chosen("look up, evidence") == ("evidence", "look up")
    with pytest.raises(BadInput, match=r"unknown decision 'mood'; known: evidence, passage relevance"):
        chosen("mood")


def test_questions_for_reports_are_not_calibrated_on():
    both = tuple(Question(f"q{n}", Query("x"), split="dev" if n % 2 else "test") for n in range(4))
    assert [q.id for q in of_dev(LabelledSet("s", both, {})).questions] == ["q1", "q3"]
    only = LabelledSet("s", QUESTIONS, {})
    assert of_dev(only) == only


@pytest.mark.parametrize(
    ("positive", "says"),
    [
        ([True] * 30, "30 cases, Yes is right for 30 of them"),
        ([True, False] * 5, "10 cases, Yes is right for 5 of them"),
    ],
)
def test_too_few_cases_are_no_calibration(positive, says):
    cases = [Case("one", f"q{n}", 0.5, label) for n, label in enumerate(positive)]
    with pytest.raises(BadInput, match=f"evidence: {says}.*needs at least {LEAST}, and 5 of either kind"):
        calibrate("evidence", "m", cases)


def test_each_set_is_judged_by_the_threshold_of_the_others():
    """In the second set the scores lie higher, so the threshold of the first one takes all for true."""
    cases = [Case("one", f"a{n}", 0.2 + 0.2 * (n % 2), bool(n % 2)) for n in range(20)]
    cases += [Case("two", f"b{n}", 0.7 + 0.2 * (n % 2), bool(n % 2)) for n in range(20)]
    made = calibrate("evidence", "m", cases)
    assert [one.auc for one in made.held_out] == [1.0, 1.0]
    assert [one.threshold for one in made.held_out] == pytest.approx([0.8, 0.3])
    assert [one.balanced_accuracy for one in made.held_out] == [0.5, 0.5]
    expected = {name: tuple(sorted(c.question for c in cases if c.of == name)) for name in ("one", "two")}
    assert made.questions == expected
    assert made.auc == pytest.approx(0.75)


@pytest.mark.slow
def test_the_interval_is_that_of_scipys_bootstrap():
    def auc(yes, no):
        return roc_auc_score([True] * len(yes) + [False] * len(no), np.concatenate([yes, no]))

    yes, no = np.repeat([0.1, 0.3, 0.5, 0.9], [1, 2, 5, 9]), np.repeat([0.1, 0.3, 0.5, 0.9], [7, 4, 3, 2])
    there = bootstrap(
        (yes, no), auc, method="percentile", vectorized=False, n_resamples=500, rng=np.random.default_rng(5)
    )
    found = _interval([*yes, *no], [True] * len(yes) + [False] * len(no))
    assert found == pytest.approx(tuple(there.confidence_interval), abs=0.04)
