"""How many more labels settle a comparison: against scipy's t-test on so many, and a bootstrap by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evaluation import more_labels
from core.evaluation.more_labels import MoreLabels, between, sentence
from core.evaluation.power import FEASIBLE, needed
from core.evaluation.release.call import Call
from core.evaluation.release.hinge import hinge
from core.evaluation.release.rule import Choice, RouteFigures


def column(values):
    return {f"q{n}": float(value) for n, value in enumerate(values)}


def drawn(seed, n, delta, sd):
    """Two routes over n questions whose differences have exactly this mean and standard deviation."""
    draw = np.random.default_rng(seed).normal(0, 1, n)
    apart = (draw - draw.mean()) / draw.std(ddof=1) * sd + delta
    base = np.full(n, 0.5)
    return column(base + apart), column(base)


@pytest.mark.parametrize("comparisons", [1, 5])
def test_with_so_many_more_the_t_test_shows_it_four_times_in_five(comparisons):
    """scipy's paired t-test on normal differences of that mean and spread, at the corrected alpha."""
    found = between(*drawn(3, 60, 0.06, 0.3), "a", "b", comparisons=comparisons)
    assert found.state == "more"
    assert found.alpha == pytest.approx(0.05 / comparisons)
    total = found.n + found.more
    p = stats.ttest_1samp(np.random.default_rng(1).normal(0.06, 0.3, (4000, total)), 0.0, axis=1).pvalue
    assert np.mean(p < found.alpha) == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
def test_the_interval_holds_the_true_number_about_as_often_as_it_says():
    """200 samples of 120 questions of a known difference; a bootstrap of a ratio is not exact at this n."""
    draw, delta, sd, n = np.random.default_rng(5), 0.05, 0.3, 120
    truth, inside = needed(delta, sd) - n, 0
    for _ in range(200):
        apart = draw.normal(delta, sd, n)
        low, high = more_labels._interval(list(apart), 0.05) if apart.mean() > 0 else (math.inf, math.inf)
        inside += low - n <= truth <= high - n
    assert 0.88 <= inside / 200 <= 1.0


def test_the_interval_is_the_percentile_bootstrap_counted_out_by_hand():
    apart = list(np.random.default_rng(2).normal(0.1, 0.3, 40))
    low, high = more_labels._interval(apart, 0.05)
    draw, values, totals = np.random.default_rng(99), np.asarray(apart), []
    for _ in range(4000):
        sample = values[draw.integers(0, 40, 40)]
        z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
        totals.append((z * sample.std(ddof=1) / sample.mean()) ** 2 if sample.mean() > 0 else math.inf)
    ordered = sorted(totals)
    assert low == pytest.approx(ordered[100], rel=0.1)
    assert (high > 10_000) == (ordered[3900] > 10_000)


def test_an_interval_of_the_difference_with_0_in_it_leaves_no_upper_end():
    found = between(*drawn(4, 50, 0.04, 0.3), "a", "b")
    assert found.ci95[0] < 0 < found.ci95[1]
    assert (found.state, found.high) == ("more", None)
    assert found.low < found.more
    assert "without an upper end: the difference may be 0" in sentence(found)


def test_what_is_shown_already_is_settled():
    found = between(*drawn(5, 60, 0.3, 0.2), "a", "b")
    assert (found.state, found.more) == ("settled", None)
    assert sentence(found).startswith("No more labels are needed between a and b: the difference is shown")


def test_what_lies_within_the_margin_needs_none():
    found = between(*drawn(6, 400, 0.0005, 0.02), "a", "b")
    assert found.margin == pytest.approx(0.05 * 0.5005)
    assert (found.state, found.more) == ("practically equal", None)
    assert "practically equal" in sentence(found)
    assert "the cheaper one can be taken" in sentence(found)


def test_no_difference_needs_no_feasible_number():
    found = between(*drawn(7, 50, 0.0001, 0.3), "a", "b")
    assert (found.state, found.more, found.high) == ("no number", None, None)
    assert f"up to {FEASIBLE:,} more questions" in sentence(found)


def test_the_same_on_every_question_is_practically_equal():
    same = column([0.3, 0.5, 0.7])
    assert between(same, same, "a", "b").state == "practically equal"


def test_one_question_tells_nothing():
    assert between({"q": 1.0}, {"q": 0.0}, "a", "b") is None
    assert between({"p": 1.0}, {"q": 0.0}, "a", "b") is None


def test_a_figure_is_as_rough_as_it_is_known():
    found = MoreLabels("a", "b", "more", 60, 0.05, (0.01, 0.09), 0.3, 0.02, 0.0125, 4, 1234, 61, 900)
    assert sentence(found) == (
        "About 1,300 more labelled questions would settle a against b (95% interval 61 to 900; power 80%,"
        " corrected for 4 comparisons)."
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1, 1, allow_nan=False), min_size=2, max_size=12))
def test_whatever_the_differences_the_answer_holds_together(apart):
    found = between(column(apart), column([0.0] * len(apart)), "a", "b")
    turned = between(column([0.0] * len(apart)), column(apart), "b", "a")
    assert found.state == turned.state
    assert found.more == turned.more
    if found.state == "more":
        assert found.more >= 1
        assert found.low is not None
        assert found.high is None or found.high >= found.low >= 1
    assert sentence(found).endswith(".")


def test_the_decision_hinges_on_the_best_and_the_cheaper_then_on_what_comes_next():
    rows = [RouteFigures(name, mean, 1.0, None, 0, 0, None, 0, 0, 0, False)
            for name, mean in (("a", 0.5), ("b", 0.6), ("c", 0.4))]  # fmt: skip
    a, b, c = rows
    assert hinge(rows, Choice((a, b, c), b, (), a), None) == ("b", "a")
    assert hinge(rows, Choice((a, b, c), b, (), b), Call(0.4, "c", 0.3)) == ("b", "c")
    assert hinge(rows, Choice((a, b, c), b, (), b), Call(1.0, None, 0.0)) == ("b", "a")
    assert hinge(rows, Choice((), None, (), None), None) == ("b", "a")  # none passes: the leading two
    assert hinge(rows, Choice((a,), a, (), a), Call(1.0, None, 0.0)) is None  # it hinges on a criterion
