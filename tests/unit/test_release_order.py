"""Which of several passing routes is shipped: the whole order by cost, ties, and what cannot be compared."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.release import gate
from core.release.criteria import Criteria
from core.release.gate import decide
from core.release.measured import of_evaluation, of_figures
from core.release.sureness import _less, choices, columns_of
from tests.released import evaluation, failed, figures_of, outcome

BEST = Criteria(max_failed=None, no_loss=False, cheaper=False)
OPEN = replace(BEST, cheaper=True)
PRICES = (1.0, 10.0)  # of a million prompt and completion tokens


def one(rank=1, *, ms=10.0, calls=1, prompt=100, completion=10):
    return replace(outcome(rank, ms=ms, calls=calls, tokens=prompt), completion_tokens=completion)


def same(count=20, **more):
    return [one(**more) for _ in range(count)]


def drawn_once(measured, criteria):
    """The route chosen where the draw is every question once; None for none."""
    columns = columns_of(measured, criteria.metric)
    _, chosen = choices(columns, np.arange(columns.ok.shape[1])[None], criteria, measured.prices)
    return None if chosen[0] < 0 else measured.routes[chosen[0]]


DEARER = {  # what costs more than `same(calls=2)`, from what weighs most to what weighs least
    "tokens": {"prompt": 101, "calls": 1, "ms": 1.0},
    "calls": {"calls": 3, "ms": 1.0},
    "time": {"calls": 2, "ms": 11.0},
}


@pytest.mark.parametrize("cheaper", [True, False])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("what", DEARER)
def test_of_equally_good_routes_the_cheapest_by_tokens_then_calls_then_time(tmp_path, what, turned, cheaper):
    routes = {"bm25": same(calls=2), "dense": same(**DEARER[what])}
    order = dict(reversed(routes.items())) if turned else routes
    measured = of_evaluation(evaluation(tmp_path / "kept", order, baseline="bm25"))
    asked = replace(BEST, cheaper=cheaper)
    decision = decide(measured, asked)
    assert (decision.best, decision.chosen, decision.rivals) == ("bm25", "bm25", ())
    assert drawn_once(measured, asked) == "bm25"


def test_a_price_goes_before_tokens(tmp_path):
    """Of fewer tokens more may be of the dear kind."""
    routes = {"bm25": same(prompt=10, completion=50), "dense": same(prompt=300, completion=0)}
    made = evaluation(tmp_path / "kept", routes)
    told = {prices: of_evaluation(made, prices) for prices in (PRICES, (None, None))}
    assert [told[PRICES].cost(route) for route in routes] == [pytest.approx(0.51), pytest.approx(0.3)]
    for prices, chosen in ((PRICES, "dense"), ((None, None), "bm25")):
        for asked in (BEST, OPEN):
            assert decide(told[prices], asked).chosen == chosen
            assert drawn_once(told[prices], asked) == chosen


def test_the_better_of_equally_cheap_routes_that_are_not_shown_to_be_worse(tmp_path):
    """The best has a dearer call; of the two cheap ones one misses at one question, the other at two."""
    dear, cheap = {"calls": 2}, {"calls": 1}
    routes = {
        "bm25": [one(2, **cheap), one(2, **cheap), *same(18, **cheap)],
        "dense": [one(2, **cheap), *same(19, **cheap)],
        "rerank": same(**dear),
    }
    for order in (routes, dict(reversed(routes.items()))):
        measured = of_evaluation(evaluation(tmp_path / next(iter(order)), order, baseline="bm25"))
        decision = decide(measured, OPEN)
        assert (decision.best, decision.chosen) == ("rerank", "dense")
        assert {rival.route: rival.verdict for rival in decision.rivals} == {
            "bm25": "no difference shown", "dense": "no difference shown",
        }  # fmt: skip
        assert drawn_once(measured, OPEN) == "dense"


def test_of_routes_that_are_alike_in_everything_the_first_is_shipped(tmp_path):
    for order in (("bm25", "dense", "rerank"), ("rerank", "bm25", "dense")):
        made = evaluation(tmp_path / order[0], dict.fromkeys(order, same()))
        measured = of_evaluation(made)
        for asked in (BEST, OPEN):
            decision = decide(measured, asked)
            assert (decision.chosen, decision.rivals) == (order[0], ())
            assert decision.sureness.chosen == {route: float(route == order[0]) for route in order}
            assert drawn_once(measured, asked) == order[0]


def test_a_route_that_has_no_question_in_common_with_the_best_stays_behind(tmp_path):
    """It is cheaper, and nobody can tell whether it is worse."""
    routes = {
        "bm25": [*(failed() for _ in range(10)), *same(10, ms=5.0)],
        "dense": [*same(10, ms=50.0), *(failed() for _ in range(10))],
    }
    routes["bm25"][-1] = one(2, ms=5.0)
    measured = of_evaluation(evaluation(tmp_path / "kept", routes))
    decision = decide(measured, OPEN)
    assert (decision.best, decision.chosen) == ("dense", "dense")
    (rival,) = decision.rivals
    assert (rival.route, rival.verdict, rival.n) == ("bm25", "cannot be told", None)
    assert drawn_once(measured, OPEN) == "dense"


def test_questions_that_failed_are_paid_by_those_that_ended_well(tmp_path):
    """Both found all they were asked; one needed twice the calls for each question that ended well."""
    broken = replace(failed(), calls=1, prompt_tokens=100, completion_tokens=10)
    routes = {"bm25": [*(broken for _ in range(10)), *same(10)], "dense": same(prompt=120)}
    measured = of_evaluation(evaluation(tmp_path / "kept", routes), PRICES)
    assert [measured.calls(route) for route in routes] == [2.0, 1.0]
    assert [measured.tokens(route) for route in routes] == [220.0, 130.0]
    assert [measured.cost(route) for route in routes] == [pytest.approx(0.4), pytest.approx(0.22)]
    for asked in (BEST, OPEN):
        assert decide(measured, asked).chosen == drawn_once(measured, asked) == "dense"


def test_of_the_nearest_a_route_without_a_mean_comes_last(tmp_path):
    """Each lacks one criterion that nobody can tell; a mean is better than none."""
    routes = {"bm25": same(25), "dense": same(25)}
    for order in (routes, dict(reversed(routes.items()))):
        folder = tmp_path / next(iter(order))
        evaluation(folder, order, baseline="dense")
        figures = figures_of(folder)
        del figures["routes"]["bm25"]["ndcg@10"]
        figures["routes"]["dense"]["p95_ms"] = None
        decision = decide(of_figures(figures, "bent"), replace(BEST, max_p95_ms=100.0))
        assert [
            sum(check.state == "cannot be told" for check in row.checks) for row in decision.candidates
        ] == [1, 1]
        assert (decision.verdict, decision.chosen, decision.nearest) == ("not decidable", None, "dense")


def test_what_is_not_known_of_a_cost_counts_as_the_dearest(tmp_path):
    evaluation(tmp_path / "kept", {"bm25": same(), "dense": same()})
    for key, value in (("p50_ms", None), ("prompt_tokens", 0)):
        figures = figures_of(tmp_path / "kept")
        figures["routes"]["bm25"][key] = value
        if key == "prompt_tokens":
            figures["routes"]["bm25"]["completion_tokens"] = 0
        decision = decide(of_figures(figures, "bent"), OPEN)
        assert decision.of("bm25").expense > decision.of("dense").expense
        assert (decision.best, decision.chosen) == ("dense", "bm25" if decision.rivals else "dense")


@pytest.mark.parametrize("baseline", ["bm25", "rerank"])
def test_figures_alone_tell_a_rival_from_the_best_where_one_of_them_is_the_baseline(tmp_path, baseline):
    """The difference is told from the baseline's side: it is turned round where the rival is the baseline."""
    routes = {
        "bm25": [one(3, ms=5.0) for _ in range(20)],
        "dense": [one(2, ms=6.0), *same(19, ms=6.0)],
        "rerank": same(ms=900.0),
    }
    evaluation(tmp_path / "kept", routes, baseline=baseline)
    decision = decide(of_figures(figures_of(tmp_path / "kept"), "bare"), OPEN)
    rivals = {rival.route: rival for rival in decision.rivals}
    assert decision.best == "rerank"
    assert rivals["bm25"].verdict == "worse"
    assert rivals["bm25"].delta == pytest.approx(-0.5)
    assert rivals["bm25"].n == 20
    if baseline == "bm25":
        assert rivals["dense"].verdict == "cannot be told"
        assert decision.chosen == "rerank"
    else:
        assert rivals["dense"].verdict == "no difference shown"
        assert decision.chosen == "dense"


def test_rows_of_numbers_come_before_others_as_tuples_do():
    rows = np.array(list(np.ndindex(3, 3, 3)), float)
    found = _less(rows[:, None, :], rows[None])
    assert found.tolist() == [[tuple(a) < tuple(b) for b in rows] for a in rows]


ONE = st.builds(
    lambda rank, ms, calls, tokens, ok: (
        replace(outcome(rank, ms=ms, calls=calls, tokens=tokens), completion_tokens=tokens // 2)
        if ok
        else replace(failed(), calls=calls, prompt_tokens=tokens)
    ),
    st.sampled_from([1, 2, None]), st.sampled_from([5.0, 10.0, 40.0]), st.integers(0, 2),
    st.sampled_from([0, 100]), st.sampled_from([True] * 9 + [False]),
)  # fmt: skip
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.sampled_from([0.3, 0.5]), "max_p95_ms": st.sampled_from([10.0, 40.0]),
        "max_cost": st.sampled_from([0.2, 1.0]), "max_tokens": st.sampled_from([60.0, 100.0]),
        "max_calls": st.sampled_from([0.9, 1.2]), "max_failed": st.sampled_from([0.0, 0.1]),
        "max_unjudged": st.sampled_from([0.85, 0.95]),
    },
)  # fmt: skip


@settings(max_examples=10)  # each writes an evaluation
@given(
    st.lists(st.lists(ONE, min_size=22, max_size=22), min_size=3, max_size=3),
    LIMITS,
    st.sampled_from([PRICES, (None, None), (1.0, None)]),
)
def test_a_draw_of_every_question_once_is_the_gate_whatever_failed_or_is_not_told(
    tmp_path_factory, rows, limits, prices
):
    routes = dict(zip(("bm25", "dense", "rerank"), rows, strict=True))
    measured = of_evaluation(evaluation(tmp_path_factory.mktemp("any"), routes), prices)
    asked = Criteria(**{"max_failed": None, **limits}, no_loss=False, cheaper=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "sureness", lambda *_: None)  # 2,000 other draws, which take most of the time
        decision = decide(measured, asked)
    columns = columns_of(measured, asked.metric)
    passes, _ = choices(columns, np.arange(22)[None], asked, prices)
    assert list(passes[0]) == [row.passes for row in decision.candidates]
    assert drawn_once(measured, asked) == decision.chosen
