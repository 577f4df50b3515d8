"""How many more labels settle a comparison: against simulated comparisons of so many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evaluation.more_labels import MoreLabels, between, sentence
from core.evaluation.power import FEASIBLE, needed
from core.evaluation.release.call import Call
from core.evaluation.release.hinge import hinge
from core.evaluation.release.rule import Choice, RouteFigures
from core.evaluation.statistics import difference_interval


def column(values):
    return {f"q{n}": float(value) for n, value in enumerate(values)}


def drawn(seed, n, delta, sd):
    """Two routes over n questions whose differences have exactly this mean and standard deviation."""
    draw = np.random.default_rng(seed).normal(0, 1, n)
    apart = (draw - draw.mean()) / draw.std(ddof=1) * sd + delta
    base = np.full(n, 0.5)
    return column(base + apart), column(base)


@pytest.mark.parametrize("comparisons", [1, 5])
def test_with_so_many_more_the_interval_shows_it_four_times_in_five(comparisons):
    """Simulated normal differences of that mean and spread, at the corrected level."""
    found = between(*drawn(3, 60, 0.06, 0.25), "a", "b", comparisons=comparisons)
    assert found.state == "more"
    assert found.alpha == pytest.approx(0.05 / comparisons)
    total = found.n + found.more
    columns = np.random.default_rng(1).normal(0.06, 0.25, (1500, total)).clip(-1, 1)
    shown = [difference_interval(column, level=1 - found.alpha)[0] > 0 for column in columns]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.03)
    assert found.high > found.more


def test_what_is_nearly_equal_takes_as_many_as_show_that():
    found = between(*drawn(3, 50, 0.0, 0.15), "a", "b")
    assert found.state == "more"
    assert found.n + found.more == needed(0.0, found.sd, above=-0.05)


def test_what_is_shown_already_is_settled():
    found = between(*drawn(5, 60, 0.3, 0.2), "a", "b")
    assert (found.state, found.more) == ("settled", None)
    assert sentence(found).startswith("No more labels are needed between a and b: the difference is shown")


@pytest.mark.parametrize(("margin", "n"), [(0.05, 60), (0.03, 100), (0.02, 150)])
def test_what_lies_within_the_margin_needs_none(margin, n):
    found = between(*drawn(6, n, 0.0005, 0.01), "a", "b", margin=margin)
    assert (found.state, found.more, found.margin) == ("practically equal", None, margin)
    assert max(map(abs, found.ci95)) < margin
    assert between(*drawn(6, n - 1, 0.0005, 0.01), "a", "b", margin=margin).state == "more"


def test_a_route_that_fails_on_one_question_in_twenty_is_rarely_called_equal():
    """The loss is exactly the margin, so each such call is wrong: exact over the number of failures."""
    for n in (5, 10, 20, 30, 60, 100, 200, 400):
        wrong = 0.0
        for failures in range(n + 1):
            mine = column([0.0] * failures + [1.0] * (n - failures))
            if between(mine, column([1.0] * n), "a", "b").state != "practically equal":
                break
            wrong += stats.binom.pmf(failures, n, 0.05)
        assert wrong <= 0.06, n


def test_a_difference_between_two_figures_takes_no_feasible_number():
    found = between(column([1.0] * 41 + [0.0] * 39), column([0.0] * 41 + [1.0] * 39), "a", "b")
    assert (found.state, found.more, found.high) == ("no number", None, None)
    assert f"up to {FEASIBLE:,} more questions" in sentence(found)


@pytest.mark.parametrize(("n", "least"), [(3, 57), (10, 50), (59, 1)])
def test_the_same_on_few_questions_is_unknown(n, least):
    same = column([0.5] * n)
    found = between(same, same, "a", "b")
    assert (found.state, found.differing, found.more) == ("unknown", 0, least)


def test_the_same_on_sixty_questions_is_practically_equal():
    same = column([0.5] * 60)
    assert between(same, same, "a", "b").state == "practically equal"


def test_one_question_tells_nothing():
    assert between({"q": 1.0}, {"q": 0.0}, "a", "b") is None
    assert between({"p": 1.0}, {"q": 0.0}, "a", "b") is None


def test_a_figure_is_as_rough_as_it_is_known():
    found = MoreLabels("a", "b", "more", 60, 30, 0.05, (-0.01, 0.11), 0.3, 0.05, 0.0125, 4, 1234, 1890)
    assert "About 1,300 more labelled questions" in sentence(found)
    assert "up to 1,900 " in sentence(found)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1, 1, allow_nan=False), min_size=2, max_size=12))
def test_whatever_the_differences_the_answer_holds_together(apart):
    found = between(column(apart), column([0.0] * len(apart)), "a", "b")
    turned = between(column([0.0] * len(apart)), column(apart), "b", "a")
    assert found.state == turned.state
    assert found.more == turned.more
    if found.state == "more":
        assert found.more >= 1
        assert found.high is None or found.high >= found.more
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
