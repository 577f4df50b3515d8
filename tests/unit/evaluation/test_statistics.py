"""Intervals, p-values, tests over many routes and power: against scipy, brute force, tables, simulation."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evaluation import comparison, statistics


def enumerated(whole):
    """The share of all sign changes with a sum at least as far from 0, counted one by one."""
    signs = itertools.product((1, -1), repeat=len(whole))
    sums = [abs(sum(map(int.__mul__, whole, one))) for one in signs]
    return sum(one >= abs(sum(whole)) for one in sums) / len(sums)


def test_the_interval_is_the_t_interval_of_the_data_and_a_value_at_each_bound():
    values = np.random.default_rng(1).beta(5, 1, 30)
    padded = [*values, 0.0, 1.0]
    ends = stats.t.interval(0.95, 31, loc=np.mean(padded), scale=stats.sem(padded))
    assert statistics.mean_interval(list(values)) == pytest.approx((ends[0], min(1, ends[1])))
    apart = np.random.default_rng(2).normal(0.1, 0.2, 40).clip(-1, 1)
    padded = [*apart, -1.0, 1.0]
    ends = stats.t.interval(0.99, 41, loc=np.mean(padded), scale=stats.sem(padded))
    assert statistics.difference_interval(list(apart), level=0.99) == pytest.approx(ends)
    centre, half = statistics.centre_and_half(40, apart.mean(), apart.std(ddof=1), level=0.99)
    assert (centre - half, centre + half) == pytest.approx(ends)
    wide = statistics.difference_interval(list(3 * apart), span=3.0, level=0.99)
    assert wide == pytest.approx([3 * end for end in ends])


def test_intervals_at_the_edges():
    assert statistics.interval([0.7]) == statistics.mean_interval([0.7]) == (0, 1)
    assert statistics.interval([7.0]) is None, "Student's t, which one value has not"
    assert statistics.mean_interval([]) is None
    low, high = statistics.mean_interval([1.0] * 30)
    assert (0.86 < low < 0.95, high) == (True, 1.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        statistics.mean_interval([0.5, 1.2])


def test_holm_by_hand():
    """Sorted .005 .01 .03 .04 times 4 3 2 1 = .02 .03 .06 .04; the last may not be below the one before."""
    adjusted = statistics.holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert adjusted == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert statistics.holm({}) == {}
    assert statistics.holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}


def test_the_interval_without_bounds_is_scipys():
    times = np.random.default_rng(3).gamma(2, 50, 25)
    ends = stats.t.interval(0.95, 24, loc=times.mean(), scale=stats.sem(times))
    assert statistics.unbounded_interval(list(times)) == pytest.approx(ends)
    assert statistics.unbounded_interval([1.0]) is None


@given(
    st.lists(st.integers(-3, 3) | st.integers(-1000, 1000), min_size=1, max_size=12),
    st.sampled_from([1, 3, 4, 7, 9, 10, 1000]),
)
@settings(deadline=None)
def test_p_of_fractions_is_that_of_all_sign_changes_of_their_numerators(numerators, denominator):
    """Thirds and ninths keep their ties."""
    found = statistics.sign_flip_p([one / denominator for one in numerators])
    assert found == pytest.approx(enumerated(numerators), rel=1e-12)


@pytest.mark.parametrize("n", [20, 60, 200, 800])
def test_p_is_the_sign_test_where_all_differences_are_one(n):
    """Down to 1e-60 and beyond."""
    assert statistics.sign_flip_p([1.0] * n) == pytest.approx(2.0 ** (1 - n), rel=1e-9)
    losses = n // 5
    apart = [1.0] * (n - losses) + [-1.0] * losses + [0.0] * 7
    assert statistics.sign_flip_p(apart) == pytest.approx(stats.binomtest(losses, n).pvalue, rel=1e-9)


def test_p_at_the_edges():
    assert 0 < statistics.sign_flip_p([1.0] * 5000) < 1e-300, "far below what can be counted, and not zero"
    assert statistics.sign_flip_p([0.0] * 30) == statistics.sign_flip_p([]) == 1.0


def test_p_does_not_depend_on_the_unit():
    apart = np.random.default_rng(5).normal(0.02, 0.1, 50)
    for unit in (1e-6, 1e5):
        assert statistics.sign_flip_p(apart * unit) == pytest.approx(statistics.sign_flip_p(apart))


def test_three_hundred_comparisons_of_two_hundred_questions_take_about_a_second():
    drawn = np.random.default_rng(6)
    apart = np.clip(drawn.normal(0.02, 0.24, (300, 200)), -1, 1) * (drawn.random((300, 200)) < 0.5)
    began = time.process_time()
    for column in apart:
        statistics.sign_flip_p(column)
    assert time.process_time() - began < 3


def max_t_enumerated(table):
    """All 2^n flips: the adjusted p of each pair, which is the same in both directions."""
    pairs = list(itertools.combinations(range(len(table)), 2))
    apart = np.array([table[one] - table[other] for one, other in pairs])
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=table.shape[1])))
    far = np.abs(signs @ apart.T) / np.sqrt((apart**2).sum(axis=1))
    largest = far.max(axis=1)
    return {
        pair: np.mean(largest >= at - 1e-9)
        for pair, at in zip(pairs, np.abs(apart.sum(axis=1)) / np.sqrt((apart**2).sum(axis=1)), strict=True)
    }


def test_worse_than_is_the_max_t_test_over_all_flips():
    drawn = np.random.default_rng(7)
    table = drawn.random((4, 12)) * 0.5 + np.array([[0.0], [0.1], [0.3], [0.5]])
    found = statistics.worse_than(table)
    for (one, other), p in max_t_enumerated(table).items():
        behind, ahead = (one, other) if table[one].mean() < table[other].mean() else (other, one)
        assert found[behind, ahead] == pytest.approx(p, abs=0.015)
        assert found[ahead, behind] == 1
    assert (np.diag(found) == 1).all()
    assert (found == statistics.worse_than(table)).all(), "the same each time"


def test_worse_than_over_common_questions_only():
    table = np.random.default_rng(8).random((3, 60))
    table[2] = table[0] - 0.4
    table[2, 30:] = np.nan
    found = statistics.worse_than(table)
    assert found[2, 0] == pytest.approx(1 / (statistics.FLIPS + 1))
    table[1, ::2] = np.nan
    assert statistics.worse_than(table)[2, 0] < 0.01
    table[1] = table[0]
    assert statistics.worse_than(table)[[0, 1], [1, 0]].tolist() == [1, 1]
    assert (statistics.worse_than(np.empty((3, 0))) == 1).all()


@pytest.mark.parametrize(("comparisons", "least"), [(1, 6), (10, 9), (300, 14)])
def test_fewer_questions_can_show_nothing(comparisons, least):
    assert statistics.least_to_show(comparisons) == least
    assert statistics.sign_flip_p([1.0] * least) * comparisons <= 0.05
    assert statistics.sign_flip_p([1.0] * (least - 1)) * comparisons > 0.05


@pytest.mark.parametrize(("margin", "least"), [(0.1, 30), (0.05, 60), (0.03, 100), (0.02, 150)])
def test_questions_needed_for_an_equivalence(margin, least):
    assert statistics.least_for_equivalence(margin) == least
    assert math.exp(-margin * least) == pytest.approx(0.05, rel=0.01)


@pytest.mark.parametrize(("d_z", "pairs"), [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15)])
def test_the_power_of_student_is_that_of_published_tables(d_z, pairs):
    """G*Power 3.1, t test of matched pairs, two-sided, alpha 0.05, power 0.8 (Faul et al. 2007)."""
    now, fewer = (statistics.power_of(n, d_z, 1.0, bounded=False) for n in (pairs, pairs - 1))
    assert fewer < 0.8 <= now + 0.001
    edge = stats.t.isf(0.025, pairs - 1)
    assert now == pytest.approx(stats.nct.sf(edge, pairs - 1, d_z * math.sqrt(pairs)), abs=1e-4)


@pytest.mark.parametrize(
    ("n", "delta", "sd", "above"),
    [
        (10, 0.4, 0.3, 0.0),
        (30, 0.1, 0.2, 0.0),
        (109, 0.0, 0.15, -0.05),
        (60, 0.02, 0.1, -0.05),
        (60, -0.466, 0.02, -0.5),
        (2, 0.9, 0.05, 0.0),
    ],
)
def test_the_power_is_that_of_simulated_intervals(n, delta, sd, above):
    drawn = np.random.default_rng(n).normal(delta, sd, (4000, n))
    padded = np.concatenate([drawn, np.full((4000, 1), -1.0), np.ones((4000, 1))], axis=1)
    ends = padded.mean(axis=1) - stats.t.ppf(0.975, n + 1) * stats.sem(padded, axis=1)
    assert statistics.power_of(n, delta, sd, above=above) == pytest.approx((ends > above).mean(), abs=0.025)


@pytest.mark.parametrize("sd", [0.0, 0.1, 0.25])
def test_needed_is_the_least_number_with_the_power(sd):
    for delta, above in ((0.1, 0.0), (0.0, -0.05)):
        found = statistics.needed(delta, sd, above=above)
        assert statistics.power_of(found, delta, sd, above=above) >= 0.8
        assert statistics.power_of(found - 1, delta, sd, above=above) < 0.8


def test_needed_at_the_edges():
    """Tied questions exclude a loss of the margin from nearly three over it on."""
    assert [statistics.needed(0.0, 0.0, above=-margin) for margin in (0.1, 0.05, 0.02)] == [28, 56, 139]
    low, fewer = (statistics.difference_interval([0.0] * n)[0] for n in (56, 55))
    assert low > -0.05 > fewer
    for delta, sd, above in ((0.0, 0.2, 0.0), (-0.06, 0.0, -0.05), (0.0001, 0.3, 0.0)):
        assert statistics.needed(delta, sd, above=above) is None, "no number shows what is not so"


@given(st.integers(6, 2000), st.floats(0.001, 0.05), st.floats(0.001, 1.0), st.booleans())
@settings(deadline=None, max_examples=50)
def test_what_is_detectable_is_shown_with_the_power_asked_for(n, alpha, sd, bounded):
    found = statistics.detectable(n, sd, alpha=alpha, bounded=bounded)
    if math.isinf(found):
        assert bounded
        assert statistics.power_of(n, 1.0, sd, alpha=alpha) == 0
    else:
        assert statistics.power_of(n, found, sd, alpha=alpha, bounded=bounded) == pytest.approx(0.8, abs=0.01)


def test_four_of_five_pilots_have_a_true_spread_below_the_upper_limit():
    drawn = np.random.default_rng(1).normal(0, 0.3, (4000, 12)).std(axis=1, ddof=1)
    assert np.mean([statistics.upper_sd(sd, 12) > 0.3 for sd in drawn]) == pytest.approx(0.8, abs=0.02)


DIFFERENCES = st.lists(st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 6)), min_size=1, max_size=30)


def mean(sample, axis):
    return np.mean(sample, axis=axis)


def columns(*lengths, seed=1):
    rng = np.random.default_rng(seed)
    return [list(np.round(rng.normal(0.02, 0.2, n), 3)) for n in lengths]


def test_an_effect_by_hand():
    """Mean .1, squared deviations .01 .04 .01 .0 .04 = .1, sd = sqrt(.1 / 4)."""
    one = comparison.effect([0.2, -0.1, 0.0, 0.1, 0.3])
    assert one["delta"] == pytest.approx(0.1)
    assert one["sd"] == pytest.approx(math.sqrt(0.025))
    assert one["d_z"] == pytest.approx(0.1 / math.sqrt(0.025))
    assert (one["n"], one["wins"], one["ties"], one["losses"]) == (5, 3, 1, 1)
    assert one["superiority"] == pytest.approx(0.7)  # 3 wins and half a tie of 5


def test_effects_at_the_edges():
    assert comparison.effect([0.0, 0.0])["d_z"] is None
    assert comparison.effect([0.3])["sd"] is None
    assert comparison.effect([0.1, 0.1, 0.1])["sd"] == 0.0  # 0.1 is no binary fraction; its sum rounds
    assert comparison.effect([0.1 + 0.2 - 0.3])["ties"] == 1
    assert comparison.family({}) == {}
    assert comparison.family({"none": []}) == {}
    one = comparison.family({"a": [0.5]})["a"]
    assert (one["p"], one["detectable"], one["verdict"]) == (1.0, None, "no difference shown")
    assert one["ci95"] == [-1, 1]
    few = [0.0] * 40 + [0.5] * 5
    assert comparison.family({"a": few})["a"]["detectable"] is None, "fewer than six differ"


@given(DIFFERENCES)
def test_an_effect_turned_round_is_the_opposite(values):
    one, other = comparison.effect(values), comparison.effect([-value for value in values])
    assert one["delta"] == pytest.approx(-other["delta"])
    assert (one["wins"], one["ties"], one["losses"]) == (other["losses"], other["ties"], other["wins"])
    assert one["superiority"] == pytest.approx(1 - other["superiority"])
    assert one["wins"] + one["ties"] + one["losses"] == one["n"] == len(values)


def test_p_is_near_that_of_sampled_exchanges():
    apart = np.random.default_rng(3).normal(0.03, 0.12, 60)
    sampled = stats.permutation_test(
        (apart,), mean, permutation_type="samples", vectorized=True, n_resamples=20_000, rng=4
    )
    assert 0.01 < sampled.pvalue < 0.5  # neither nothing nor everything, so that being near says something
    assert statistics.sign_flip_p(apart) == pytest.approx(sampled.pvalue, abs=0.01)


FAMILIES = st.dictionaries(st.integers(0, 5), DIFFERENCES, min_size=1)


@given(FAMILIES)
@settings(deadline=None)
def test_interval_p_and_verdict_always_agree(differences):
    for one in comparison.family(differences).values():
        low, high = one["ci95"]
        assert (one["verdict"] == "better") == (low > 0) == (one["p_holm"] < 0.05 and one["delta"] > 0)
        assert (one["verdict"] == "worse") == (high < 0) == (one["p_holm"] < 0.05 and one["delta"] < 0)
        assert low - 1e-9 <= one["delta"] <= high + 1e-9
        assert one["p"] <= one["p_holm"]
        for name in ("detectable", "detectable_holm"):
            assert one[name] is None or 0 < one[name] <= 1


def test_intervals_have_the_level_at_which_holm_tests():
    """The one shown is compared at alpha / 3, the others at alpha / 2."""
    clear, vague, other = np.random.default_rng(3).normal([[0.2], [0.02], [0.0]], 0.2, (3, 60)).clip(-1, 1)
    found = comparison.family({"clear": clear, "vague": vague, "other": other})
    assert [one["verdict"] for one in found.values()] == ["better", *["no difference shown"] * 2]
    for values, name, left in ((clear, "clear", 3), (vague, "vague", 2), (other, "other", 2)):
        level = 1 - 0.05 / left
        assert found[name]["ci95"] == pytest.approx(statistics.difference_interval(list(values), level=level))


def test_a_family_of_any_size_shows_what_every_question_shows():
    same = {n: [0.0] * 200 for n in range(1000)}
    found = comparison.family(same | {"all": [1.0] * 200, "none": [-1.0] * 200})
    assert (found["all"]["verdict"], found["none"]["verdict"]) == ("better", "worse")
    assert found["all"]["ci95"][0] > 0.9


def test_where_the_shapes_differ_and_the_means_do_not_nothing_is_better():
    """Slightly better on 95% of questions, failing on the others: one sample in five has no failure."""
    apart = [0.053] * 30
    one = comparison.family({"a": apart})["a"]
    assert statistics.sign_flip_p(apart) < 0.001
    assert one["ci95"][0] < 0 < one["ci95"][1]
    assert one["verdict"] == "no difference shown"


def test_five_questions_show_nothing_though_their_interval_alone_would():
    """All 2^5 exchanges have a p of .0625 at least."""
    assert statistics.difference_interval([1.0] * 5)[0] > 0
    one = comparison.family({"a": [1.0] * 5})["a"]
    assert (one["p"], one["verdict"], one["ci95"][0]) == (0.0625, "no difference shown", 0)


def test_times_have_the_interval_of_student():
    times = np.random.default_rng(5).normal(40, 30, 25)
    one = comparison.family({"a": list(times)})["a"]
    assert one["ci95"] == pytest.approx(statistics.unbounded_interval(times))
    assert one["verdict"] == "better"
    assert one["detectable"] > 1


def test_only_questions_both_have_are_compared():
    values = {
        "base": {"a": {"m": 0.5}, "b": {"m": None}, "c": {"m": 0.1}, "d": {"m": 0.2}},
        "one": {"a": {"m": 0.7}, "b": {"m": 0.9}, "c": {"m": 0.0}, "e": {"m": 1.0}},
        "never": {"e": {"m": 1.0}},
    }
    assert comparison.by_question(values, "one", "base", "m") == pytest.approx({"a": 0.2, "c": -0.1})
    found = comparison.against(values, "base", ["m"])
    assert found["never"] == {}
    assert found["one"]["m"]["n"] == 2
    table = comparison.compared(values, "base", ["m"], ["m"], ["m"])
    assert table["base"]["m"] == pytest.approx(0.8 / 3)
    assert "vs_baseline" not in table["base"]
    assert table["one"]["vs_baseline"] == found["one"]
    assert comparison.compared(values, "gone", ["m"], ["m"], ["m"])["one"]["vs_baseline"] == {}


def test_what_is_detectable_takes_the_upper_limit_of_the_spread():
    for one in comparison.family(dict(enumerate(columns(40, 40, 25, 25, seed=8)))).values():
        spread = statistics.upper_sd(one["sd"], one["n"])
        for name, alpha in (("detectable", 0.05), ("detectable_holm", 0.05 / 4)):
            power = statistics.power_of(one["n"], one[name], spread, alpha=alpha)
            assert power == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize(
    ("n", "sd", "alpha"),
    [(50, 0.0, 0.05), (50, None, 0.05), (5, 0.2, 0.05), (8, 0.2, 0.05 / 10), (6, 0.9, 0.05)],
    ids=["no spread", "unknown spread", "five questions", "ten comparisons", "above 1"],
)
def test_what_cannot_be_determined_is_not_stated(n, sd, alpha):
    assert comparison.detectable(n, sd, alpha=alpha) is None


def test_the_smallest_of_a_set():
    shown = {"a": (40, 0.1, 0.2), "b": (30, 0.3, 0.5), "c": (40, 0.2, 0.3), "same": (40, None, None)}
    names = ("n", "detectable", "detectable_holm")
    rows = {name: {"m": dict(zip(names, row, strict=True))} for name, row in shown.items()} | {"never": {}}
    found = comparison.smallest(rows, "m")
    assert (found["comparisons"], found["questions"], found["power"]) == (3, 40, 0.8)
    assert (found["median"], found["median_holm"]) == (0.2, 0.3)
    assert (found["least_holm"], found["most_holm"]) == (0.2, 0.5)
    assert comparison.smallest(rows, "other") is None
