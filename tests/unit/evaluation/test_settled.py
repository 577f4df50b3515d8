"""When to stop grading: the decision by a part of the grades, and whether the rest could change it."""

from __future__ import annotations

import random
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.labels.settled import TOLERANCE, UNGRADED, Contest, Standing

ROUTES = ("a", "b", "c")


def drawn(
    seed: int, questions: int, skill: dict[str, float], prefix: str = ""
) -> tuple[Contest, dict[tuple[str, str], int]]:
    """A pool of routes that put a relevant passage first with the given probability, and all its grades."""
    draw = random.Random(seed)
    pool: dict[tuple[str, str], dict[str, int]] = {}
    truth = {}
    for question in (f"{prefix}{at}" for at in range(questions)):
        for route, share in skill.items():
            names = [f"d{at}" for at in range(12)]
            draw.shuffle(names)
            if draw.random() < share:
                names.remove("d0")
                names.insert(0, "d0")
            for at, name in enumerate(names[:10], 1):
                pool.setdefault((question, name), {})[route] = at
                truth[question, name] = int(name == "d0")
    return Contest(pool), truth


@given(st.lists(st.integers(-1, 3), min_size=12, max_size=12), st.randoms(use_true_random=False))
def test_scores_are_ndcg_at_ten_with_ungraded_passages_as_not_relevant(grades, draw):
    lists = {route: draw.sample([f"d{at}" for at in range(12)], 10) for route in ROUTES}
    pool = {
        ("q", name): {route: found.index(name) + 1 for route, found in lists.items() if name in found}
        for name in dict.fromkeys(name for found in lists.values() for name in found)
    }
    contest = Contest(pool)
    given_ = {pair: grade for pair, grade in zip(pool, grades, strict=False) if grade != UNGRADED}
    scores = contest.scores(contest.grades(given_))
    qrels = {name: grade for (_, name), grade in given_.items() if grade}
    if not qrels:
        assert scores.shape == (0, len(contest.routes))
        return
    for column, route in zip(scores[0], contest.routes, strict=True):
        ideal = sum(
            gain / log2(at + 1) for at, gain in enumerate(sorted(qrels.values(), reverse=True)[:10], 1)
        )
        expected = sum(qrels.get(name, 0) / log2(at + 1) for at, name in enumerate(lists[route], 1)) / ideal
        assert column == pytest.approx(expected)


def test_the_order_begins_with_what_one_route_shows_at_the_top_and_the_others_do_not():
    contest = Contest({("q", "same"): {"a": 1, "b": 1}, ("q", "low"): {"a": 9}, ("q", "apart"): {"b": 1}})
    assert contest.order() == [("q", "apart"), ("q", "low"), ("q", "same")]


def test_a_difference_from_what_was_shown_by_hand():
    """Discounts of ranks 1 and 3 are 1 and 0.5. All graded: (1 - 0.5) * 3 / 3 * 2 of 3 requests."""
    pool = {
        ("q", "up"): {"new": 1, "shown": 3},
        ("q", "same"): {"new": 2, "shown": 2},
        ("p", "x"): {"new": 1},
    }
    contest = Contest({**pool, ("p", "y"): {"shown": 1}}, counts={"q": 2})
    assert contest.order()[-1] == ("q", "same")
    assert contest.beyond_shown(contest.grades({})) == []
    (found,) = contest.beyond_shown(contest.grades({pair: 3 * (pair[0] == "q") for pair in contest.pairs}))
    assert found.estimate == pytest.approx(1 / 3)
    assert found.interval == pytest.approx((1 / 3, 1 / 3))
    assert (found.n, found.unit, found.verdict) == (3, "grades", "better")
    (found,) = contest.beyond_shown(contest.grades({contest.order()[0]: 0}))
    assert found.verdict == "no difference shown"
    assert -1 / 3 <= found.interval[0] <= 0 <= found.interval[1] <= 2 / 3  # whatever the others are


def test_the_interval_from_the_graded_beginning_holds_and_needs_fewer_grades():
    """60 pools whose passages draw other random numbers: nearly every interval has the whole pool's value."""
    inside, shown = 0, 0
    for seed in range(60):
        contest, truth = drawn(seed, 40, {"new": 0.7, "shown": 0.4}, f"{seed}/")
        grades = {pair: 3 * grade for pair, grade in truth.items()}
        (whole,) = contest.beyond_shown(contest.grades(grades))
        (part,) = contest.beyond_shown(contest.grades({pair: grades[pair] for pair in contest.order()[:120]}))
        inside += part.interval[0] <= whole.estimate <= part.interval[1]
        shown += part.verdict == "better"
    assert inside >= 57, inside
    assert shown >= 30, shown


@pytest.mark.parametrize(("questions", "kind"), [(40, "ship"), (25, "ship"), (24, "undecided")])
def test_a_clear_winner_ships_from_25_questions_on(questions, kind):
    contest, truth = drawn(1, questions, {"a": 1.0, "b": 0.1, "c": 0.1})
    assert contest.standing(contest.grades(truth)) == Standing(kind, "a")
    assert contest.standing(contest.grades({})) == Standing("undecided", None)


def test_a_second_opinion_is_asked_for_where_the_opposite_grade_would_change_the_decision():
    """Two routes that find the relevant passage of 24 questions alike, but for the last one."""
    pool = {(str(n), id): {"a": 1 + at, "b": 1 + at} for n in range(23) for at, id in enumerate("xy")}
    pool |= {("23", "x"): {"a": 1, "b": 9}, ("23", "y"): {"a": 9, "b": 1}}
    contest = Contest(pool)
    grades = {pair: 3 * (pair[1] == "x") for pair in pool} | {("23", "x"): 0, ("23", "y"): 3}
    now = contest.standing(contest.grades(grades))
    assert now == Standing("undecided", "b")
    turning = contest.turning(contest.grades(grades), {*pool}, 2)
    assert turning == [("23", "x"), ("23", "y")]
    assert contest.turning(contest.grades(grades), {("0", "x")}, 2) == []
    for pair in pool:
        flipped = contest.grades({**grades, pair: 0 if grades[pair] else 3})
        assert (contest.standing(flipped) != now) == (pair in turning)


def test_it_is_settled_once_the_rest_cannot_matter_and_not_before_enough_is_graded():
    contest, truth = drawn(2, 40, {"a": 1.0, "b": 0.1, "c": 0.1})
    order = contest.order()

    def settled(n: int) -> bool:
        return contest.settled(contest.grades({pair: truth[pair] for pair in order[:n]}))

    assert not settled(0)
    assert not settled(39)
    assert settled(len(order) // 2)
    assert contest.settled(contest.grades(truth))


@pytest.mark.slow
def test_where_it_says_settled_the_whole_pool_agrees_nineteen_times_in_twenty():
    """Routes of known quality, 60 draws: the route by the grades so far is within the tolerance."""
    agreed, stopped, saved = 0, 0, 0
    for seed in range(60):
        contest, truth = drawn(seed, 20, {"a": 0.6, "b": 0.5, "c": 0.3})
        order, given_ = contest.order(), 0
        while given_ < len(order):
            given_ += 20
            if contest.settled(contest.grades({pair: truth[pair] for pair in order[:given_]})):
                break
        found = contest.standing(contest.grades({pair: truth[pair] for pair in order[:given_]}))
        means = contest.scores(contest.grades(truth)).mean(axis=0)
        assert found.route is not None
        agreed += means.max() - means[contest.routes.index(found.route)] <= TOLERANCE
        stopped += given_ < len(order)
        saved += max(0, len(order) - given_)
    assert agreed >= 54, agreed
    assert stopped >= 30, stopped
    assert saved > 0


def test_missing_passages_are_assumed_relevant_as_often_as_graded_ones_are():
    contest, truth = drawn(3, 200, {"a": 0.5, "b": 0.5})
    draw = random.Random(5)
    graded = contest.grades({pair: truth[pair] for pair in draw.sample(contest.pairs, len(truth) // 2)})
    shares = contest.shares(graded)[graded < 0]
    every = contest.grades(truth)
    assert np.mean(shares) == pytest.approx((every[graded < 0] > 0).mean(), abs=0.02)
