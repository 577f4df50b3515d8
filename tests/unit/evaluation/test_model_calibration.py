"""A model's closed questions on labelled questions: what is asked, and what it is worth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.backends.calibrations import DECISIONS
from core.domain.errors import BadInput, Cancelled
from core.domain.types import Query
from core.evaluation.calibration import LEAST, Case, _interval, calibrate, chosen, gather, of_dev
from core.evaluation.dataset import LabelledSet, Question
from tests.fakes import FakeEngine, ScriptedLLM

TEXTS = {f"p{n}": f"Parcel number {n} is sent from depot {n} on day {n} of the month." for n in range(1, 31)}
QUESTIONS = tuple(
    Question(
        f"q{n}", Query(f"On which day is parcel number {n} sent?"), answers=(f"Day {n}",), answerable=True
    )
    for n in range(1, 31)
)
SMALL_TALK = tuple(
    Question(f"t{n}", Query(f"Hello there, number {n}"), mode="no_retrieval") for n in range(1, 6)
)


def relevant_to(corpus, question):
    """The passages that name the number asked for."""
    number = question.id[1:]
    ids = [p.id for _, p, _ in corpus.everything() if f"number {number} " in p.text]
    assert len(ids) == 1
    return {ids[0]: 1}


@pytest.fixture
def place(tmp_path):
    """An engine whose model says Yes where the passages shown have the number of the question."""
    import re

    def says(request):
        *_, last = request.messages
        text = last.content
        number = re.search(r"parcel number (\d+) sent", text)
        known = number is not None and f"Parcel number {number[1]} is" in text
        return {"Yes": 0.9, "No": 0.1} if known else {"Yes": 0.2, "No": 0.8}

    def closed(request):
        return {"It is sent on day 3.": 0.7}

    def look_up(request):
        yes = 0.1 if "Hello" in request.messages[-1].content else 0.8
        return {"Yes": yes, "No": 1 - yes}

    llm = ScriptedLLM(
        {
            "evidence": says,
            "relevant": says,
            "claim": says,
            "closed-answer": closed,
            "look-up": look_up,
        }
    )
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
    cases = gather(
        engine,
        LabelledSet("parcels", (one,), {one.id: relevant_to(corpus, one) | far}),
        corpus,
        "evidence",
        5,
        1,
    )
    assert cases == ()
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
    one, two = made.held_out
    assert (one.auc, two.auc) == (1.0, 1.0)
    assert (one.threshold, two.threshold) == pytest.approx((0.8, 0.3))
    assert (one.balanced_accuracy, two.balanced_accuracy) == (0.5, 0.5)
    assert made.questions == {
        "one": tuple(sorted(f"a{n}" for n in range(20))),
        "two": tuple(sorted(f"b{n}" for n in range(20))),
    }
    assert made.auc == pytest.approx(0.75)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.booleans()), min_size=12, max_size=40))
@settings(max_examples=10)
def test_the_interval_is_that_of_scipys_bootstrap(cases):
    from scipy.stats import bootstrap
    from sklearn.metrics import roc_auc_score

    scores, positive = [score for score, _ in cases], [label for _, label in cases]
    if not 3 <= sum(positive) <= len(positive) - 3:
        return

    def auc(yes, no):
        return roc_auc_score([True] * len(yes) + [False] * len(no), np.concatenate([yes, no]))

    groups = [np.array([s for s, label in cases if label is kind]) for kind in (True, False)]
    there = bootstrap(
        groups, auc, method="percentile", vectorized=False, n_resamples=500, rng=np.random.default_rng(5)
    )
    low, high = _interval(scores, positive)
    assert (low, high) == pytest.approx(tuple(there.confidence_interval), abs=0.09)
