import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.evaluation.calibration import choose
from scripts.calibrate import fit


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
    from sklearn.metrics import balanced_accuracy_score

    scores, labels = [score for score, _ in cases], [label for _, label in cases]
    if len(set(labels)) < 2:
        with pytest.raises(BadInput, match="both kinds"):
            choose(scores, labels, objective="balanced accuracy")
        return
    chosen = choose(scores, labels, objective="balanced accuracy")
    told = balanced_accuracy_score(labels, [score >= chosen for score in scores])
    for other in scores:
        assert balanced_accuracy_score(labels, [score >= other for score in scores]) <= told + 1e-9
