"""Agreement of annotators, against a table worked by hand and scikit-learn; and the order of judging."""

import pytest

from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import final, label_next
from core.evaluation.labels.desk import Desk
from core.store.labels import Judgement, LabelSet, Pooled


def desk(*judgements, passages=("a", "b", "c", "d"), questions=("q1",), name="set"):
    pool = {q: {p: Pooled(Passage(p, p, p, p, 0, 1)) for p in passages} for q in questions}
    numbered = tuple(
        Judgement(*one[:3], *(one[3:] or ("person", "grade", 0)), number=n)
        for n, one in enumerate(judgements, 1)
    )
    asked = tuple(Question(q, Query(q)) for q in questions)
    return Desk(LabelSet(name, "tiny", "", 2, ""), asked, pool, numbered)


def grades(who, values, source="person", question="q1"):
    return [(question, p, who, source, "grade", g) for p, g in values.items()]


# Worked by hand: rows Ann, columns Bob, 50 passages.
#        0   1   2   3
#   0   20   5   0   0
#   1    3   7   2   0
#   2    0   1   4   1
#   3    0   0   2   5
TABLE = ((20, 5, 0, 0), (3, 7, 2, 0), (0, 1, 4, 1), (0, 0, 2, 5))


def test_kappa_equals_the_table_worked_by_hand():
    pairs = [(i, j) for i, row in enumerate(TABLE) for j, count in enumerate(row) for _ in range(count)]
    first = {("q", str(n)): i for n, (i, _) in enumerate(pairs)}
    second = {("q", str(n)): j for n, (_, j) in enumerate(pairs)}
    found = final.agree("Ann", first, "Bob", second)
    assert (found.n, found.confusion) == (50, TABLE)
    assert found.observed == pytest.approx(36 / 50)
    # by chance: (25*23 + 12*13 + 6*8 + 7*6) / 50^2 = 821 / 2500
    assert found.kappa == pytest.approx((0.72 - 0.3284) / (1 - 0.3284))
    # linear: 14 passages one grade apart: 14/50; by chance the sum over cells of row * column * |i - j|
    rows, columns = (25, 12, 6, 7), (23, 13, 8, 6)
    for weight, value in ((1, found.linear), (2, found.quadratic)):
        chance = sum(rows[i] * columns[j] * abs(i - j) ** weight for i in range(4) for j in range(4)) / 2500
        assert value == pytest.approx(1 - (14 / 50) / chance)


@pytest.mark.filterwarnings("ignore:The BCa confidence interval")
def test_the_interval_of_kappa_needs_two_questions_and_grades_that_differ():
    assert final.interval((("q", 1, 2), ("q", 3, 3))) is None
    assert final.interval((("a", 1, 1), ("b", 1, 1))) is None
    alone = (("a", 0, 0), ("b", 3, 3))  # some resamples hold one grade alone
    assert final.interval(alone) is None


def test_cannot_tell_and_later_are_no_grades_and_models_are_apart():
    (alone,) = final.between(desk(*grades("Ann", {"a": 1}), *grades("Bob", {"b": 1})))
    assert (alone.n, alone.observed, alone.kappa) == (0, None, None)
    assert alone.why == "no passage was graded by both"
    made = desk(
        *grades("Ann", {"a": 3, "b": 1, "c": 0}),
        *grades("Bob", {"a": 1, "b": 1}),
        ("q1", "c", "Bob", "person", "cannot", None),
        ("q1", "d", "Bob", "person", "later", None),
        *grades("import", {"a": 2}, "import"),
        *grades("model:m", {"a": 2, "b": 1, "c": 3, "d": 3}, "model"),
    )
    found = final.between(made)
    assert [(a.first, a.second, a.n) for a in found] == [
        ("Ann", "Bob", 2),
        ("Ann", "import", 1),
        ("Bob", "import", 1),
    ]
    apart = final.suggestions(made)
    assert [(a.first, a.second, a.n, a.observed) for a in apart] == [
        ("model:m", "final grade", 3, pytest.approx(2 / 3)),  # median of 3, 1, 2 is 2; 1 of 1, 1; 0
        ("model:m", "Ann", 3, pytest.approx(1 / 3)),
        ("model:m", "Bob", 2, 0.5),
        ("model:m", "import", 1, 1.0),
    ]


def test_disagreements_come_furthest_first_and_settled_ones_last():
    made = desk(
        *grades("Ann", {"a": 3, "b": 2, "c": 3, "d": 1}),
        *grades("Bob", {"a": 2, "b": 0, "c": 0, "d": 1}),
        *grades("model:m", {"d": 3}, "model"),
        ("q1", "c", "Ann", "adjudication", "grade", 3),
    )
    found = final.disagreements(made)
    assert [(d.passage, d.distance, d.adjudication is not None) for d in found] == [
        ("b", 2, False),
        ("a", 1, False),
        ("c", 3, True),
    ]
    assert found[0].grades == (("Ann", 2), ("Bob", 0))


# --- the order of judging

MANY = tuple(f"p{n:02}" for n in range(30))


def test_the_order_is_stable_complete_and_each_annotators_own():
    made = desk(passages=MANY, questions=("q2", "q1"))
    order = label_next.order_for(made, "Ann")
    assert order == label_next.order_for(desk(passages=MANY[::-1], questions=("q2", "q1")), "Ann")
    assert [q for q, _ in order] == ["q2"] * 30 + ["q1"] * 30
    assert sorted(order) == sorted((q, p) for q in ("q1", "q2") for p in MANY)
    first, second = [p for _, p in order[:30]], [p for _, p in order[30:]]
    assert first != second
    assert first != [p for _, p in label_next.order_for(made, "Bob")[:30]]
    assert first != [
        p for _, p in label_next.order_for(desk(passages=MANY, questions=("q2",), name="b"), "Ann")
    ]
    assert first not in (sorted(first), sorted(first, reverse=True))
    before = [p for _, p in label_next.order_for(desk(passages=MANY[:20]), "Ann")]
    after = [p for _, p in label_next.order_for(desk(passages=MANY), "Ann")]
    assert [p for p in after if p in MANY[:20]] == before
    questions = tuple(f"q{n}" for n in range(600))
    order = label_next.order_for(desk(passages=("a", "b", "c"), questions=questions), "Ann")
    first = [p for _, p in order[::3]]
    assert all(150 < first.count(p) < 250 for p in "abc")


def test_counts_of_an_annotator_add_up():
    said = [
        ("q1", "b", "Ann", "person", "later", None),
        ("q1", "a", "Ann", "person", "later", None),
        ("q1", "c", "Ann", "person", "grade", 0),
        ("q2", "c", "Ann", "person", "cannot", None),
        ("q2", "d", "Bob", "person", "grade", 0),
        ("q2", "d", "Ann", "adjudication", "grade", 0),
    ]
    made = desk(*said, questions=("q1", "q2"))
    by, whole = label_next.progress(made, "Ann")
    assert by == {"q1": label_next.Progress(1, 0, 2, 1), "q2": label_next.Progress(0, 1, 0, 3)}
    assert whole == label_next.Progress(1, 1, 2, 4)
    assert whole.total == 8
    assert label_next.progress(desk(), "Ann")[1] == label_next.Progress(left=4)
