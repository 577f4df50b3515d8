"""Corrected means: PPI++ and the weights of drawn questions, against published formulas and the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.metrics import by_question
from core.evaluation.judge.correction import corrected
from core.evaluation.labels.draw import largest_difference
from core.evaluation.statistics import mean_interval

VALUES = st.lists(st.floats(0, 1), min_size=3, max_size=30)


def test_the_weight_is_that_of_the_paper_for_many_labels():
    """PPI++, section 6: cov(Y, f) / ((1 + n / N) var f), for the judge's mean elsewhere, N questions."""
    draw = np.random.default_rng(1)
    truth = draw.random(5000)
    judge = np.clip(truth + draw.normal(0, 0.3, 5000), 0, 1)
    n = 2500
    found = corrected(truth[:n], judge[:n], judge)
    published = np.cov(truth[:n], judge[:n])[0, 1] / ((1 + n / 2500) * np.var(judge))
    assert found.weight * 2500 / 5000 == pytest.approx(published, abs=0.02)
    mean = truth[:n].mean() + published * (judge[n:].mean() - judge[:n].mean())
    assert found.mean == pytest.approx(mean, abs=1e-4)
    assert found.equal_to > 1.2 * n, "a good judge saves labels"
    assert corrected([], [], [1.0, 0.0]) is None


def test_weights_are_those_of_horvitz_and_thompson():
    """Three of six questions, drawn with chances 1, 1/2 and 1/4: (.9 / 1 - .2 / .5 + .1 / .25) / 6."""
    people, chances = [0.9, -0.2, 0.1], np.array([1, 1 / 2, 1 / 4])
    found = corrected(people, [0.0] * 3, [], 3 / (6 * chances), paired=True)
    assert found.mean == pytest.approx(0.15)


@given(VALUES, VALUES)
def test_it_is_never_wider_than_labels_alone_and_never_claims_fewer_labels(people, others):
    found = corrected(people, people[::-1], [*people, *others])
    low, high = mean_interval(people)
    assert found.ci95[1] - found.ci95[0] <= high - low + 1e-9
    assert found.equal_to >= found.labels == len(people)
    assert 0 <= found.weight <= 1
    alone = corrected(people, people, [])
    assert alone.ci95 == pytest.approx(mean_interval(people))
    assert (alone.weight, alone.equal_to) == (0.0, len(people))


@pytest.mark.parametrize("agrees", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("kind", "mean"), [("even", 0.5), ("ceiling", 0.97)])
@pytest.mark.parametrize(("labels", "others"), [(20, 100), (50, 400)])
def test_the_interval_covers_the_truth_however_bad_the_judge_is(agrees, kind, mean, labels, others):
    """Of 500 draws 460 are asked: at a coverage of .95 fewer come once in 500 times, at .90 in 11 of 12."""
    draw = np.random.default_rng([labels, int(100 * agrees), int(100 * mean)])
    covered = 0
    for _ in range(500):
        truth = (draw.random(labels + others) < mean).astype(float)
        judge = np.where(draw.random(len(truth)) < agrees, truth, 0.7 * draw.permutation(truth) + 0.2)
        low, high = corrected(truth[:labels], judge[:labels], judge).ci95
        covered += low <= mean <= high
    assert covered >= 460


IDS = [f"d{n}" for n in range(14)]


@given(st.permutations(IDS), st.permutations(IDS), st.lists(st.integers(0, 3), min_size=14, max_size=14))
def test_no_labels_show_a_larger_difference_than_the_largest(mine, theirs, grades):
    qrels = {"q": dict(zip(IDS, grades, strict=True))}
    values = [
        by_question(qrels, {"q": [(id, -at) for at, id in enumerate(ids[:10])]}, metrics=["ndcg@10"])["q"]
        for ids in (mine, theirs)
    ]
    found = largest_difference(mine, theirs)
    assert abs(values[0]["ndcg@10"] - values[1]["ndcg@10"]) <= found + 1e-9
    assert found == pytest.approx(largest_difference(theirs, mine))
    assert largest_difference(mine, mine) == 0
    assert largest_difference(["a"], ["b"]) == 1
    assert largest_difference(["a", "b"], ["b", "a"]) == pytest.approx(1 - 1 / np.log2(3))
