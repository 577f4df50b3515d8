"""Which of two routes people prefer: stored with its sides, and estimated as Bradley and Terry did."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, stdtrit
from sklearn.linear_model import LogisticRegression

from core.domain.errors import BadInput
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import exchange
from core.evaluation.labels.preferences import bradley_terry, leading, matchups, preferences
from core.evaluation.statistics import mean_interval
from core.store import Store
from core.store.labels import Judgement, Pooled

ROUTES = ("bm25", "dense", "hyde")


@pytest.fixture
def store(store_place):
    store = Store(store_place)
    desks.create(store, "set", "tiny", [Question(f"q{n}", Query(f"Question {n}?")) for n in range(24)])
    found = {}
    for n in range(24):
        draw, ranks = np.random.default_rng(n), {}
        for route in ROUTES:
            for rank, at in enumerate(draw.permutation(9)[:6], 1):
                ranks.setdefault(int(at), []).append((route, rank))
        found[f"q{n}"] = [
            Pooled(Passage(f"d:{at}", "d", "Title", f"Text {at}.", 0, 7), tuple(by))
            for at, by in ranks.items()
        ]
    desks.add_to_pool(store, "set", found)
    yield store
    store.close()


def prefer(store, route, who="Ann", count=24, routes=ROUTES[:2], name="set"):
    """Prefer `route` (or say a kind) in the first comparisons of the order."""
    for one in matchups(desks.load(store, name), routes)[:count]:
        sides = one.sides(who)
        kind = route if route in ("tie", "neither") else "left" if sides[0] == route else "right"
        desks.judge(store, name, one.judged(who, kind))


def test_two_routes_have_the_interval_of_a_mean_and_one_that_never_lost_stays_bounded(store):
    prefer(store, "bm25", count=8)
    few = preferences(desks.load(store, "set"))
    assert not few.pairs[0].claims
    prefer(store, "bm25")
    found = preferences(desks.load(store, "set"))
    (pair,) = found.pairs
    assert (pair.route, pair.questions, pair.wins, pair.losses, pair.claims) == ("bm25", 24, 24, 0, True)
    assert pair.ci95 == pytest.approx(mean_interval([1.0] * 24), abs=1e-6)
    assert [one.route for one in found.routes] == ["bm25", "dense"]
    assert pair.preferred == pytest.approx(25 / 26, abs=1e-6)
    assert found.routes[0].strength == pytest.approx(np.log(25) / 2, abs=1e-5)


def test_ties_and_both_bad_count_half_and_the_left_share_counts_neither(store):
    prefer(store, "tie", count=10)
    prefer(store, "neither", who="Bob", count=10)
    found = preferences(desks.load(store, "set"))
    (pair,) = found.pairs
    assert (pair.ties, pair.neither, pair.wins, pair.losses) == (10, 10, 0, 0)
    assert (pair.preferred, pair.claims, found.left) == (pytest.approx(0.5), False, None)
    prefer(store, "dense", who="Cem", count=24)
    sides = [one.sides("Cem")[0] for one in matchups(desks.load(store, "set"), ROUTES[:2])]
    found = preferences(desks.load(store, "set"))
    assert found.left == pytest.approx(sides.count("dense") / 24)
    assert 0 < sides.count("dense") < 24  # sides are shuffled


def test_comparisons_out_of_the_drawn_order_and_of_unlinked_routes_count_nowhere(store):
    order = matchups(desks.load(store, "set"), ROUTES[:2])
    desks.judge(store, "set", order[-1].judged("Ann", "left"))
    assert preferences(desks.load(store, "set")).left_out == 1
    assert [one.key for one in order] == sorted((one.key for one in order), reverse=True)
    assert {tuple(sorted(one.sides("Ann"))) for one in order} == {("bm25", "dense")}
    assert not preferences(desks.load(store, "set")).pairs


def test_a_preference_survives_export_and_import_and_undo_leaves_grades_alone(store):
    prefer(store, "bm25", count=3)
    desks.judge(
        store,
        "set",
        Judgement("q0", next(iter(desks.load(store, "set").pool["q0"])), "Ann", "person", "grade", 3),
    )
    before = desks.load(store, "set")
    assert (len(before.current), len(before.held), before.annotators()) == (1, 4, ("Ann",))
    gone = desks.undo(store, "set", "Ann", preferences=True)
    third = matchups(before, ROUTES[:2])[2]
    assert (gone.question, desks.routes_of(gone)) == (third.question, third.sides("Ann"))
    left = desks.load(store, "set")
    assert (len(left.current), len(left.held)) == (1, 3)
    file = exchange.table(left)
    for _ in range(2):
        desks.undo(store, "set", "Ann", preferences=True)
    assert not preferences(desks.load(store, "set")).comparisons
    assert exchange.import_table(store, "set", file, "labels.csv").added == 2
    again = desks.load(store, "set")
    assert [(j.question, j.passage, j.kind, j.created) for j in again.held if j.kind != "grade"] == [
        (j.question, j.passage, j.kind, j.created) for j in left.held if j.kind != "grade"
    ]


@pytest.mark.parametrize("passage", ['["bm25", "bm25"]', "a:1", '["bm25"]', "3"])
def test_a_preference_names_two_routes(store, passage):
    with pytest.raises(BadInput):
        desks.judge(store, "set", Judgement("q0", passage, "Ann", "person", "left"))


def test_the_routes_that_lead_by_grades_are_offered_first(store):
    desk = desks.load(store, "set")
    for id, pool in desk.pool.items():
        top = next(passage for passage, one in pool.items() if ("hyde", 1) in one.found)
        desks.judge(store, "set", Judgement(id, top, "Ann", "person", "grade", 3))
    assert leading(desks.load(store, "set"))[0] == "hyde"


# Wins of American League teams in 1987, row over column: Agresti 1990, Categorical Data Analysis, 10.10.
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
WINS = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ]
)


def games():
    """Each game as a question of its own: [games, 2], and whether the first won."""
    rows = [(i, j) for i, j in np.argwhere(WINS >= 0) for _ in range(WINS[i, j])]
    return np.array(rows), np.ones(len(rows))


def test_the_strengths_are_those_of_the_baseball_table_and_of_a_logistic_regression():
    pairs, won = games()
    strengths, covariance = bradley_terry(pairs, won, np.ones(len(won)), np.arange(len(won)))
    published = np.array([1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0.0])  # log odds against Baltimore
    assert strengths - strengths[-1] == pytest.approx(published, abs=0.12)  # drawn in by one win and one loss
    every = np.array(list(combinations(range(7), 2)))
    both = np.concatenate([pairs, every, every])
    y = np.concatenate([won, np.ones(21), np.zeros(21)])
    weights = np.concatenate([won, np.full(42, 1 / 6)])
    design = np.eye(7)[both[:, 0]] - np.eye(7)[both[:, 1]]
    flipped = np.where(np.arange(len(y)) % 2, 1, -1)  # a regression takes both classes
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(design[:, :6] * flipped[:, None], np.where(flipped > 0, y, 1 - y), sample_weight=weights)
    assert strengths - strengths[-1] == pytest.approx([*model.coef_[0], 0.0], abs=1e-4)
    assert np.sqrt(covariance[0, 0] + covariance[6, 6] - 2 * covariance[0, 6]) == pytest.approx(
        0.34, abs=0.03
    )


@pytest.mark.parametrize(
    ("routes", "apart", "ties"), [(2, 0.0, 0.0), (2, 6.0, 0.0), (4, 2.0, 0.6), (4, 2.0, 0.0)]
)
def test_the_intervals_cover_a_known_truth(routes, apart, ties):
    draw, truth = np.random.default_rng(5), np.linspace(apart, -apart, routes) / 2
    every, covered = list(combinations(range(routes), 2)), []
    for _ in range(150):
        pairs = np.array(every * 20)
        asked = np.repeat(np.arange(20), len(every))
        chance = expit(truth[pairs[:, 0]] - truth[pairs[:, 1]])
        even = 2 * ties * np.minimum(chance, 1 - chance)
        u = draw.random(len(pairs))
        won = np.select([u < even, u < even / 2 + chance], [0.5, 1.0], 0.0)
        strengths, covariance = bradley_terry(pairs, won, np.ones(len(won)), asked)
        for i, j in every:
            middle = expit(strengths[i] - strengths[j])
            error = np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
            half = stdtrit(21, 0.975) * middle * (1 - middle) * error
            covered.append(abs(expit(truth[i] - truth[j]) - middle) <= half)
    assert np.mean(covered) > 0.92
