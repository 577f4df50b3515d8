"""Thresholds chosen on dev questions: hand-worked, against brute force, scikit-learn and scipy."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap
from sklearn.metrics import balanced_accuracy_score, precision_recall_fscore_support

from core.domain.errors import BadInput
from core.evaluation import calibration
from core.evaluation.calibration import OBJECTIVES, WANTED, rate, tidy
from core.evaluation.tuning.calibrate import (
    Measured,
    _interval,
    about,
    calibrate,
    compared,
    counts_at,
    curve,
    halves,
    in_words,
    left_out,
    reliability_in_words,
    reliable,
    worth,
)
from core.evaluation.tuning.sweep_split import Split
from core.evaluation.tuning.threshold_cases import Judged, Target
from ui.charts.grades import calibration_curves

SCORES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
RIGHT = (False, False, True, False, False, True, True, True)
cases_ = st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 20), st.booleans()), min_size=2, max_size=25)


def judged(pairs, prefix="q"):
    return [Judged(f"{prefix}{n}", score, right) for n, (score, right) in enumerate(pairs)]


def choose(cases, *rule):
    return calibration.choose([one.score for one in cases], [one.positive for one in cases], *rule)


def target(cases, acts="from", shipped=0.5, **more):
    names = ("r", "grade", "high", "question", "it trusts", "there is one", acts, True)
    return Target(*names, cases=tuple(cases), stored={shipped: len(cases)}, **more)


def both(cases):
    return any(one.positive for one in cases) and not all(one.positive for one in cases)


HAND = judged(zip(SCORES, RIGHT, strict=True))


def test_by_hand():
    assert choose(HAND, "from", "f1") == 0.65
    assert choose(HAND, "from", "balanced accuracy") == 0.65  # (3/4 + 4/4) / 2
    assert choose(HAND, "from", "precision", 0.6) == 0.25  # 4 of 6 with all four found
    assert choose(HAND, "from", "precision", 1.0) == 0.65
    assert choose(HAND, "from", "recall", 1.0) == 0.25
    # Below .25 two of two are not right, of four; below .65 four of five, and none is missed: F1 8/9.
    assert choose(HAND, "below", "f1") == 0.65
    assert choose(HAND, "below", "precision", 1.0) == 0.25
    cases = judged([(0.1, True), (0.9, False), (0.8, False), (0.2, False)])
    with pytest.raises(
        BadInput, match=r"no threshold reaches precision 0\.9 here; the best is 0\.25, at 0\.1"
    ):
        choose(cases, "from", "precision", 0.9)
    with pytest.raises(BadInput, match="0 of 2 cases are positive"):
        choose(judged([(0.1, False), (0.2, False)]))
    with pytest.raises(BadInput, match="wanted=None for precision"):
        choose(HAND, "from", "precision")


def by_scikit_learn(cases, acts, at):
    acted = [(one.score >= at) == (acts == "from") for one in cases]
    right = [one.positive == (acts == "from") for one in cases]
    rates = precision_recall_fscore_support(right, acted, average="binary", zero_division=np.nan)[:3]
    return {
        **dict(zip(("precision", "recall", "f1"), rates, strict=True)),
        "balanced accuracy": balanced_accuracy_score(right, acted),
    }


def by_brute_force(cases, acts, objective, wanted):
    """The best value over every threshold there is: at each score, and above all."""
    found = []
    for at in [*sorted({one.score for one in cases}), math.inf]:
        values = by_scikit_learn(cases, acts, at)
        other = {"precision": "recall", "recall": "precision"}.get(objective, objective)
        if wanted is None or values[objective] >= wanted - 1e-12:
            found.append(np.nan_to_num(values[other]))
    return max(found, default=None)


@given(cases_, st.sampled_from(["from", "below"]), st.sampled_from(OBJECTIVES), st.floats(0.3, 1))
def test_the_threshold_is_the_best_of_all(pairs, acts, objective, wanted):
    cases, wanted = judged(pairs), wanted if objective in WANTED else None
    if not both(cases):
        return
    best = by_brute_force(cases, acts, objective, wanted)
    try:
        at = choose(cases, acts, objective, wanted)
    except BadInput:
        # "below" its lowest threshold a step acts on no case: that reaches nothing.
        assert best is None
        return
    counts = counts_at(cases, acts, at)[1].sum(axis=0)
    theirs = by_scikit_learn(cases, acts, at)
    for name, value in theirs.items():
        assert rate(counts, name) == pytest.approx(value, nan_ok=True)
    other = {"precision": "recall", "recall": "precision"}.get(objective, objective)
    assert np.nan_to_num(rate(counts, other)) == pytest.approx(best)
    if wanted is not None:
        assert rate(counts, objective) >= wanted - 1e-9


@pytest.mark.slow
@given(cases_, cases_)
def test_held_out_questions_never_influence_the_choice(dev, held):
    dev, fixed = judged(dev, "d"), judged([(n / 10, n > 4) for n in range(10)], "t")
    parts = Split(tuple(one.question for one in dev), tuple(f"t{n}" for n in range(99)), "by hand")
    positive = sum(one.positive for one in dev)
    if positive < 5 or len(dev) - positive < 5:
        return
    other = [*fixed, *judged(held, "t1")]
    one, two = (calibrate(target([*dev, *more]), parts, "f1") for more in (fixed, other))
    assert one.threshold == two.threshold == choose(dev, "from", "f1")
    assert one.on_dev == two.on_dev


@given(cases_, st.floats(0, 1), st.sampled_from(["from", "below"]))
def test_what_thresholds_are_worth_agrees_with_scikit_learn_and_curves_are_that(pairs, at, acts):
    cases = judged(pairs)
    found, theirs = worth(cases, acts, at), by_scikit_learn(cases, acts, at)
    acted = [(one.score >= at) == (acts == "from") for one in cases]
    right = [one.positive == (acts == "from") for one in cases]
    assert (found.n, found.acted, found.positive) == (len(cases), sum(acted), sum(right))
    assert found.of["precision"].value == (pytest.approx(theirs["precision"]) if any(acted) else None)
    assert found.of["recall"].value == (pytest.approx(theirs["recall"]) if any(right) else None)
    if both(cases):
        assert found.of["balanced accuracy"].value == pytest.approx(theirs["balanced accuracy"])
        assert found.of["f1"].value == pytest.approx(theirs["f1"])
    drawn = curve(cases, acts)
    figure = calibration_curves({"dev": drawn}, {"shipped": 0.5, "chosen": 0.65}, "<b>")
    assert len(figure.data) == (0 if drawn is None else 2)
    assert [one.text for one in figure.layout.annotations] == ["shipped 0.5", "chosen 0.65"]
    assert "<b>" not in figure.layout.xaxis.title.text
    if drawn is None:
        assert not any(right)
        return
    assert list(drawn.thresholds) == sorted(drawn.thresholds)
    for at, precision, recall in zip(drawn.thresholds, drawn.precision, drawn.recall, strict=True):
        step = at if acts == "from" else np.nextafter(at, 9)  # "up to and with it"
        counts = counts_at(cases, acts, step)[1].sum(axis=0)
        assert rate(counts, "precision") == pytest.approx(precision)
        assert rate(counts, "recall") == pytest.approx(recall)


def test_intervals_are_those_of_scipy_by_question_and_need_values():
    draw = np.random.default_rng(5)
    cases = [
        Judged(f"q{n // 3}", float(score), bool(draw.random() < score))
        for n, score in enumerate(draw.random(90))
    ]
    found = worth(cases, "from", 0.5)
    _, counts = counts_at(cases, "from", 0.5)

    def precision(at, axis=-1):
        return rate(counts[np.moveaxis(at, axis, -1)].sum(axis=-2), "precision")

    ranges = bootstrap((np.arange(30),), precision, method="percentile", rng=1, batch=500).confidence_interval
    assert found.of["precision"].interval == pytest.approx((ranges.low, ranges.high), abs=0.02)
    assert found.of["precision"].interval[0] < found.of["precision"].value < found.of["precision"].interval[1]
    found = worth(judged([(0.9, True), *((0.1, n % 2 == 0) for n in range(20))]), "from", 0.5)
    assert found.of["precision"].value == 1.0
    assert found.of["precision"].interval is None  # a third of the resamples act on nothing
    found = worth([Judged("q", 0.1, False), Judged("q", 0.9, True)], "from", 0.5)
    assert (found.of["precision"].value, found.of["precision"].interval) == (1.0, None)
    drawn = np.arange(100.0)
    drawn[:5] = np.nan
    assert _interval(drawn) == pytest.approx(tuple(np.percentile(drawn[5:], [2.5, 97.5])))
    drawn[5] = np.nan
    assert _interval(drawn) is None


def test_p_is_that_of_all_exchanges():
    cases = HAND
    (_, one), (_, two) = (counts_at(cases, "from", at) for at in (0.65, 0.15))
    seen = rate(one.sum(axis=0), "f1") - rate(two.sum(axis=0), "f1")
    drawn = []
    for swaps in itertools.product([False, True], repeat=len(cases)):
        where = np.array(swaps)[:, None]
        first, second = np.where(where, two, one), np.where(where, one, two)
        drawn.append(rate(first.sum(axis=0), "f1") - rate(second.sum(axis=0), "f1"))
    drawn = np.array(drawn)
    exact = 2 * min((drawn >= seen - 1e-9).mean(), (drawn <= seen + 1e-9).mean())
    difference, p = compared(cases, "from", 0.65, 0.15, "f1")
    assert difference.value == pytest.approx(float(seen))
    assert p == pytest.approx(min(1, exact))
    assert compared(cases, "from", 0.65, 0.61, "f1") == (type(difference)(0.0, (0.0, 0.0)), 1.0)


@given(st.floats(-5, 5), st.floats(0, 5))
def test_a_tidy_threshold_decides_as_the_middle(low, more):
    score = low + more
    if score <= low:
        return
    assert low < tidy(low, score) <= score
    assert tidy(None, score) <= score
    assert tidy(0.5, 0.66) == 0.58
    above = float(np.nextafter(0.5, 1))
    assert tidy(0.5, above) == above, "no number lies between them"


def whole(shipped=0.5, flip=False):
    """20 dev and 20 held-out questions whose scores from .7 on are right."""
    return target(
        [
            Judged(f"{part}{n}", n / 20, (n >= 14) != (flip and part == "t" and n % 2 == 0))
            for part in "dt"
            for n in range(20)
        ],
        shipped=shipped,
    )


PARTS = Split(tuple(f"d{n}" for n in range(20)), tuple(f"t{n}" for n in range(20)), "by hand")


def test_a_calibration_in_words():
    found = calibrate(whole(), PARTS, "f1")
    assert (found.threshold, found.dev, found.held_out) == (0.68, 20, 20)
    assert found.chosen.of["precision"].value == found.chosen.of["recall"].value == 1.0
    assert found.shipped.of["precision"].value == pytest.approx(6 / 10)
    assert found.difference.value == pytest.approx(1 - 0.75)
    said = in_words(found)
    assert said.startswith("0.68 has the highest F1 on 20 dev questions. On 20 held-out questions: precis")
    assert "The threshold in use, 0.5, gives precision 0.600 (95% interval " in said
    # p is .12, though the interval of the difference leaves 0 out: that is not enough
    assert found.difference.interval[0] > 0
    assert not found.shown
    assert "No difference found between the chosen threshold and the one in use" in said
    assert "p = 0.120, 20 held-out questions" in said
    assert halves(found) == ""
    assert "two halves" in halves(calibrate(whole(), replace(PARTS, made=True), "f1"))
    assert "From this threshold on, it trusts. That is correct if there is one." in about(whole())
    assert "unless there is one" in about(target(HAND, acts="below"))
    found = calibrate(whole(shipped=0.68), PARTS, "f1")
    assert "have the same F1" in in_words(found)
    assert not found.shown
    found = calibrate(whole(shipped=0.72), PARTS, "f1")  # differs for one question
    assert "No difference found" in in_words(found)
    one = target(HAND, left_out={"why": 3})
    assert left_out(one, 10) == (
        "Excluded: 2 questions: the route failed or did not take this step; 3 questions: why."
    )
    assert left_out(target(HAND), 8) == ""


def test_a_difference_is_shown_by_its_interval_and_by_p_below_five_percent():
    found = calibrate(whole(), PARTS, "f1")
    for interval, p, shown in (
        ((0.1, 0.4), 0.049, True),
        ((-0.4, -0.1), 0.049, True),
        ((0.1, 0.4), 0.05, False),
        ((0.1, 0.4), 0.12, False),
        ((0.0, 0.4), 0.01, False),
        ((-0.4, 0.0), 0.01, False),
        ((-0.1, 0.4), 0.01, False),
        (None, 0.01, False),
    ):
        assert replace(found, difference=Measured(0.2, interval), p=p).shown is shown, (interval, p)


def test_too_few_cases_are_refused_with_their_number():
    few = [
        *judged([(n / 10, n > 6) for n in range(10)], "d"),
        *judged([(n / 10, n > 4) for n in range(10)], "t"),
    ]
    with pytest.raises(
        BadInput, match="the questions to choose on have 3 questions where there is one; at leas"
    ):
        calibrate(target(few), PARTS, "f1")
    with pytest.raises(BadInput, match="the held-out questions have 3 questions"):
        calibrate(target(few), Split(PARTS.held_out, PARTS.chosen_on, "by hand"), "f1")


def test_only_probabilities_are_held_against_shares():
    found = reliable(whole(), whole().cases)
    assert found.n == 40
    assert "expected calibration error" in reliability_in_words(whole())
    assert reliable(target([Judged("q", 1.2, True)]), [Judged("q", 1.2, True)]) is None
    assert "not meant as probabilities" in reliability_in_words(target([Judged("q", 1.2, True)]))
