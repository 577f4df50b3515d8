"""Effects, intervals, p-values and power: by hand, against scipy one at a time, ranx, and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from core.evaluation import comparison, effects, statistics
from tests.uncompiled import ranx

DIFFERENCES = st.lists(st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 6)), min_size=1, max_size=30)


def mean(sample, axis):
    return np.mean(sample, axis=axis)


def columns(*lengths, seed=1):
    rng = np.random.default_rng(seed)
    return [list(np.round(rng.normal(0.02, 0.2, n), 3)) for n in lengths]


def test_an_effect_by_hand():
    """Mean .1, squared deviations .01 .04 .01 .0 .04 = .1, sd = sqrt(.1 / 4)."""
    one = effects.effect([0.2, -0.1, 0.0, 0.1, 0.3])
    assert one["delta"] == pytest.approx(0.1)
    assert one["sd"] == pytest.approx(math.sqrt(0.025))
    assert one["d_z"] == pytest.approx(0.1 / math.sqrt(0.025))
    assert (one["n"], one["wins"], one["ties"], one["losses"]) == (5, 3, 1, 1)
    assert one["superiority"] == pytest.approx(0.7)  # 3 wins and half a tie of 5


def test_effects_at_the_edges():
    assert effects.effect([0.0, 0.0])["d_z"] is None
    assert effects.effect([0.3])["sd"] is None
    assert effects.effect([0.1, 0.1, 0.1])["sd"] == 0.0  # 0.1 is no binary fraction; its sum rounds
    assert effects.effect([0.1 + 0.2 - 0.3])["ties"] == 1
    assert effects.family({}) == {}
    assert effects.family({"none": []}) == {}
    one = effects.family({"a": [0.5]})["a"]
    assert (one["p"], one["ci95"], one["detectable"], one["verdict"]) == (
        1.0,
        None,
        None,
        "no difference shown",
    )


@given(DIFFERENCES)
def test_an_effect_turned_round_is_the_opposite(values):
    one, other = effects.effect(values), effects.effect([-value for value in values])
    assert one["delta"] == pytest.approx(-other["delta"])
    assert (one["wins"], one["ties"], one["losses"]) == (other["losses"], other["ties"], other["wins"])
    assert one["superiority"] == pytest.approx(1 - other["superiority"])
    assert one["wins"] + one["ties"] + one["losses"] == one["n"] == len(values)


def test_d_z_is_scipys_t_over_the_root_of_n():
    (values,) = columns(80)
    t = stats.ttest_1samp(values, 0.0).statistic
    assert effects.effect(values)["d_z"] == pytest.approx(t / math.sqrt(80))


def test_many_intervals_are_those_of_each_alone():
    """scipy with the same seed resamples the same questions, so not even the noise differs."""
    several = columns(40, 57, 40, 1, 40, 0)
    found = statistics.intervals(several)
    for values, pair in zip(several, found, strict=True):
        if len(values) < 2:
            assert pair is None
            continue
        alone = stats.bootstrap(
            (np.asarray(values),), mean, n_resamples=statistics.RESAMPLES, batch=500, method="percentile",
            rng=statistics.SEED,
        ).confidence_interval  # fmt: skip
        assert pair == pytest.approx((alone.low, alone.high), abs=1e-12)


def test_many_p_values_are_those_of_each_alone():
    several = columns(40, 57, 9, 40, 1, 9, 2)
    found = statistics.paired_ps(several)
    for values, p in zip(several, found, strict=True):
        if len(values) < 2:
            assert p == 1.0
            continue
        alone = stats.permutation_test(
            (np.asarray(values),), mean, permutation_type="samples", n_resamples=statistics.RESAMPLES,
            batch=500, rng=statistics.SEED,
        ).pvalue  # fmt: skip
        assert p == pytest.approx(alone, abs=2e-4)
    normal = stats.ttest_1samp(several[0], 0.0).pvalue  # the test it comes near to for many questions
    assert found[0] == pytest.approx(normal, abs=0.02)


@pytest.mark.slow
def test_what_a_column_gets_does_not_depend_on_the_others():
    """Not even by rounding, on which equal means of exchanged pairs would otherwise part."""
    rng = np.random.default_rng(6)
    several = (rng.choice([0, 1 / 3, 0.5, 1, -1 / 3, -0.5, -1, 0.1, -0.7], (12, 137))).tolist()
    assert statistics.paired_ps(several) == [statistics.paired_ps([one])[0] for one in several]
    assert statistics.intervals(several) == [statistics.interval(one) for one in several]
    whole = [-2, 2, -1, 1, 1, 0, 0, 2, -2, 1, 1]  # in thirds: ties by the score, and exact in whole numbers
    assert statistics.paired_ps([[one / 3 for one in whole]]) == statistics.paired_ps([whole])


def test_a_difference_of_nothing_has_p_one():
    assert statistics.paired_ps([[0.0] * 30, [0.0] * 5]) == [1.0, 1.0]


@pytest.mark.slow
def test_p_is_near_ranx():
    """Its own implementation of Fisher's test."""
    rng = np.random.default_rng(3)
    base = rng.random(60)
    other = np.clip(base + rng.normal(0.03, 0.12, 60), 0, 1)
    with ranx() as module:
        theirs, _ = module.statistical_tests.fisher_randomization_test(base, other, n_permutations=2000)
    ours = statistics.paired_p(other.tolist(), base.tolist())
    assert 0.01 < ours < 0.5  # neither nothing nor everything, so that being near says something
    assert float(theirs) == pytest.approx(ours, abs=0.025)


def test_the_interval_of_a_difference_keeps_questions_paired():
    """Two routes that vary much from question to question, and one from the other by little."""
    hard = np.linspace(0, 1, 50)
    shift = np.where(np.arange(50) % 2, 0.06, 0.04)
    values = {
        "base": {f"q{n}": {"m": float(v)} for n, v in enumerate(hard)},
        "one": {f"q{n}": {"m": float(v)} for n, v in enumerate(hard + shift)},
    }
    one = comparison.against(values, "base", ["m"])["one"]["m"]
    low, high = one["ci95"]
    assert 0.046 < low < 0.05 < high < 0.054
    assert low == pytest.approx(statistics.interval(list(shift))[0], abs=1e-9)


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


def test_another_baseline_turns_the_difference_round():
    one, two = columns(30, 30)
    values = {
        name: {f"q{n}": {"m": value} for n, value in enumerate(column)}
        for name, column in (("one", one), ("two", two))
    }
    there = comparison.against(values, "one", ["m"])["two"]["m"]
    back = comparison.against(values, "two", ["m"])["one"]["m"]
    assert there["delta"] == pytest.approx(-back["delta"])
    assert there["ci95"] == pytest.approx([-back["ci95"][1], -back["ci95"][0]], abs=0.003)
    assert there["p"] == pytest.approx(back["p"], abs=0.005)
    assert there["detectable"] == pytest.approx(back["detectable"])


def test_a_family_is_corrected_as_one():
    found = effects.family(dict(enumerate(columns(40, 40, 25, 25, seed=8))))
    adjusted = statistics.holm({key: one["p"] for key, one in found.items()})
    for key, one in found.items():
        assert one["p_holm"] == adjusted[key]
        assert one["detectable_holm"] == effects.detectable(one["n"], one["sd"], alpha=0.05 / 4)
        assert one["detectable_holm"] > one["detectable"]


def test_power_is_that_of_published_tables():
    """Cohen 1988 (d = .5): 34 pairs give a power of .80, 33 do not; and scipy's noncentral t."""
    assert effects.power_of(33, 0.5) < 0.8 <= effects.power_of(34, 0.5)
    assert effects.power_of(199, 0.2) >= 0.8 > effects.power_of(197, 0.2)
    assert effects.power_of(20, 0.0) == pytest.approx(0.05)
    for n, d in [(5, 0.3), (12, 0.8), (50, 0.2), (200, 0.1)]:
        edge, centre = stats.t.isf(0.025, n - 1), d * math.sqrt(n)
        both = stats.nct.sf(edge, n - 1, centre) + stats.nct.cdf(-edge, n - 1, centre)
        assert effects.power_of(n, d) == pytest.approx(both, abs=1e-8)


@given(st.integers(2, 2000), st.floats(1e-4, 0.5), st.floats(0.001, 2.0))
def test_what_is_detectable_is_seen_with_the_power_asked_for(n, alpha, sd):
    found = effects.detectable(n, sd, alpha=alpha)
    if found is None:
        assert n < 4  # with 2 or 3 questions a strict alpha asks for more than any difference
        assert effects.power_of(n, 1e4 / math.sqrt(n), alpha=alpha) < 0.8, "10,000 standard errors"
        return
    assert effects.power_of(n, found / sd, alpha=alpha) == pytest.approx(0.8, abs=1e-6)
    assert found == pytest.approx(effects.detectable(n, 1.0, alpha=alpha) * sd)
    more = effects.detectable(n + 10, sd, alpha=alpha)
    assert more < found


def test_nothing_is_detectable_without_variation():
    assert effects.detectable(50, 0.0) is None
    assert effects.detectable(50, None) is None
    assert effects.detectable(1, 0.2) is None


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 30])
def test_simulated_differences_of_that_size_are_seen_four_times_in_five(n):
    sd = 0.25
    true = effects.detectable(n, sd)
    drawn = np.random.default_rng(n).normal(true, sd, (20_000, n))
    assert (stats.ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.01)
    ours = statistics.paired_ps(drawn[:600].tolist())  # the test that is used has nearly the same power
    assert np.mean(np.array(ours) < 0.05) == pytest.approx(0.8, abs=0.04)


def test_the_smallest_of_a_set():
    rows = {
        "a": {"m": {"n": 40, "detectable": 0.1, "detectable_holm": 0.2}},
        "b": {"m": {"n": 30, "detectable": 0.3, "detectable_holm": 0.5}},
        "c": {"m": {"n": 40, "detectable": 0.2, "detectable_holm": 0.3}},
        "same": {"m": {"n": 40, "detectable": None, "detectable_holm": None}},
        "never": {},
    }
    assert effects.smallest(rows, "m") == {
        "comparisons": 3, "questions": 40, "power": 0.8, "median": 0.2, "median_holm": 0.3,
        "least_holm": 0.2, "most_holm": 0.5,
    }  # fmt: skip
    assert effects.smallest(rows, "other") is None
