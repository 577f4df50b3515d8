"""Effects, intervals, p-values and power: by hand, against scipy one at a time, ranx, and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.evaluation import comparison, statistics

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


def test_what_cannot_be_determined_is_not_stated():
    assert comparison.detectable(50, 0.0) is None
    assert comparison.detectable(50, None) is None
    assert comparison.detectable(5, 0.2) is None, "five questions show no difference"
    assert comparison.detectable(8, 0.2, alpha=0.05 / 10) is None
    assert comparison.detectable(6, 0.9) is None, "it would be above 1"
    few = [0.0] * 40 + [0.5] * 5
    assert comparison.family({"a": few})["a"]["detectable"] is None, "fewer than six differ"


def test_the_smallest_of_a_set():
    shown = {"a": (40, 0.1, 0.2), "b": (30, 0.3, 0.5), "c": (40, 0.2, 0.3), "same": (40, None, None)}
    names = ("n", "detectable", "detectable_holm")
    rows = {name: {"m": dict(zip(names, row, strict=True))} for name, row in shown.items()} | {"never": {}}
    found = comparison.smallest(rows, "m")
    assert (found["comparisons"], found["questions"], found["power"]) == (3, 40, 0.8)
    assert (found["median"], found["median_holm"]) == (0.2, 0.3)
    assert (found["least_holm"], found["most_holm"]) == (0.2, 0.5)
    assert comparison.smallest(rows, "other") is None
