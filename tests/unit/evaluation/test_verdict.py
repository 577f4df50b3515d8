"""The rule for what to ship: worked cases, a second implementation, and what no input may change."""

import json
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.stats import t

from core.evaluation import statistics
from core.evaluation.comparison import from_summary, pair
from core.evaluation.costs import Cost, cheapest_first, costs_more
from core.evaluation.verdict import Option, Verdict, by_values, decide, details, headline


def cost(ms=10.0, **more):
    return Cost(more.pop("spent", 0.0), more.pop("calls", 0.0), ms, **more)


def column(values):
    return {f"q{n}": value for n, value in enumerate(values)}


def verdict(columns, costs=None, states=None, **asked):
    values = {route: column(row) for route, row in columns.items()}
    options = []
    for place, (route, row) in enumerate(columns.items()):
        price = (costs or {}).get(route, cost(10.0 * (place + 1) ** 2))
        mean = float(np.mean(row)) if len(row) else None
        options.append(Option(route, mean, len(row), (states or {}).get(route, "passes"), price))
    return by_values(options, values, **asked)


def reasons(found):
    return [one.id for one in found.reasons]


@pytest.mark.parametrize("n", [1, 3, 10, 24])
def test_few_tied_questions_decide_nothing(n):
    found = verdict({"bm25": [1.0] * n, "dense": [1.0] * n})
    assert (found.decision, found.chosen) == ("undecided", None)
    assert "few-questions" in reasons(found)
    assert found.best_so_far.shown_margin > 0.05


def test_a_single_route_ships_from_25_questions():
    assert verdict({"bm25": [0.3] * 24}).decision == "undecided"
    assert verdict({"bm25": [0.3] * 24}).more_questions == 1
    assert verdict({"bm25": [0.3] * 25}).chosen == "bm25"
    assert verdict({"bm25": [0.3] * 10}, min_questions=10).chosen == "bm25"


@pytest.mark.parametrize(("margin", "needed"), [(0.05, 60), (0.03, 100), (0.02, 150)])
def test_tied_routes_are_equivalent_from_the_rule_of_three(margin, needed):
    for n, decision in ((needed - 1, "undecided"), (needed, "equivalent")):
        found = verdict({"bm25": [0.5] * n, "dense": [0.5] * n}, margin=margin)
        assert (found.decision, found.min_equivalent) == (decision, needed)
    assert (found.chosen, found.equivalent) == ("bm25", ("bm25", "dense"))


def test_the_better_route_is_not_passed_over_for_a_cheaper_one():
    """12 questions, .646 against .893, not shown to differ: that is no reason to ship the cheaper."""
    draw = np.random.default_rng(1)
    good = np.clip(draw.normal(0.893, 0.2, 12), 0, 1)
    found = verdict({"bm25": np.clip(good - draw.normal(0.25, 0.4, 12), 0, 1), "rerank": good})
    assert (found.decision, found.chosen, found.best_so_far.route) == ("undecided", None, "rerank")


def test_a_better_route_ships_although_it_costs_more():
    found = verdict({"bm25": [0.2] * 40, "rerank": [0.8] * 40})
    assert (found.decision, found.chosen, reasons(found)) == ("ship", "rerank", ["better-than-all"])
    first = "Ship rerank: better than every other route (nDCG@10, 40 scored questions of a set)."
    assert headline(found, str, "nDCG@10", "a set") == first
    assert "equivalent" not in " ".join(details(found, str))
    near = {"bm25": [0.5] * 99 + [0.4], "dense": [0.5] * 100}
    assert verdict(near).chosen == "bm25"
    assert verdict(near, cheaper=False).chosen == "dense", "the cheapest is not asked for"


def test_what_misses_a_limit_is_no_rival_and_what_is_open_is():
    columns = {"bm25": [0.2] * 40, "rerank": [0.8] * 40}
    failed = verdict(columns, states={"rerank": "fails"})
    assert (failed.chosen, failed.excluded) == ("bm25", ("rerank",))
    assert any("rerank" in sentence for sentence in details(failed, str))
    held = verdict(columns, states={"rerank": "open"})
    assert (held.decision, held.best_so_far.route) == ("undecided", "bm25")
    assert verdict(columns, states=dict.fromkeys(columns, "fails")).decision == "none"
    assert reasons(verdict(columns, states=dict.fromkeys(columns, "open")))[0] == "open-limits"
    assert verdict({"bm25": []}).decision == "undecided"


def test_the_verdict_names_who_is_behind():
    draw = np.random.default_rng(3)
    base = draw.uniform(0.4, 0.6, 80)
    found = verdict({"a": base, "b": base + 0.3, "c": base + 0.3 + draw.normal(0, 0.01, 80)})
    assert found.behind == ("a",)


def test_costs_within_the_tolerance_are_the_same_and_the_simpler_route_ships():
    times = np.random.default_rng(5).lognormal(1.8, 0.3, 60)
    plain, close, slow = (
        Cost(0.0, 0.0, float(np.median(ms)), steps, column(ms.tolist()))
        for ms, steps in ((times * 1.002, 1.0), (times, 5.0), (times + 30, 1.0))
    )
    assert not costs_more(plain, close)
    assert costs_more(slow, close)
    assert cheapest_first({"slow": slow, "fast": close, "simple": plain}) == ["simple", "fast", "slow"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cost(1.0, spent=5.0), cost(900.0, spent=4.0)),
        (cost(1.0, calls=2.0), cost(900.0, calls=1.0)),
        (cost(None), cost(900.0)),
        (cost(1.0, spent=None), cost(900.0, spent=9.0)),
    ],
)
def test_price_weighs_more_than_calls_and_those_more_than_time(one, other):
    assert costs_more(one, other)
    assert not costs_more(other, one)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0.5, 0.999))
def test_figures_alone_give_the_interval_of_the_questions(apart, level):
    one = pair("a", "b", apart, level)
    assert (one.low, one.high) == pytest.approx(statistics.difference_interval(apart, level=level), abs=1e-9)
    other = from_summary("b", "a", one.n, -one.delta, one.sd, level)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))


def allowed(columns, margin, least):
    """Return the routes that may ship, by scipy's t and nothing of the program."""

    def low(apart):
        data = np.append(apart, [-1.0, 1.0])
        return data.mean() - t.ppf(0.975, len(data) - 1) * data.std(ddof=1) / sqrt(len(data))

    n = len(next(iter(columns.values())))
    return {
        route
        for route, mine in columns.items()
        if n >= least
        and all(low(np.asarray(mine) - other) > -margin for key, other in columns.items() if key != route)
    }


SCORES = st.sampled_from([0.0, 0.0, 0.2, 0.39, 0.5, 0.63, 1.0])


@given(st.data(), st.integers(1, 4), st.integers(1, 70), st.sampled_from([0.05, 0.1, 0.3]))
def test_what_ships_is_what_a_second_implementation_allows(data, routes, n, margin):
    base = data.draw(st.lists(SCORES, min_size=n, max_size=n))
    columns = {"r0": base}
    for place in range(1, routes):
        changed = data.draw(st.dictionaries(st.integers(0, n - 1), SCORES, max_size=6))
        columns[f"r{place}"] = [changed.get(q, value) for q, value in enumerate(base)]
    found, may = verdict(columns, margin=margin), allowed(columns, margin, 25)
    assert found.chosen is None or found.chosen in may
    assert set(found.equivalent) <= may
    if len(may) == 1 or (may and n >= found.min_equivalent):
        assert found.chosen == min(may), "the cheapest of those that may"
    else:
        assert found.decision == "undecided"
    looser = verdict(columns, margin=min(1.0, margin * 1.5))
    assert looser.chosen is not None or found.chosen is None, "a wider margin ships no less"
    assert TypeAdapter(Verdict).validate_python(json.loads(json.dumps(found.document()))) == found


def test_a_comparison_that_is_not_known_is_never_a_pass():
    options = [Option(route, 0.5, 100, "passes", cost()) for route in ("a", "b")]
    found = decide(options, lambda one, other: None)
    assert (found.decision, found.best_so_far.shown_margin) == ("undecided", None)
    assert "no-question-values" in reasons(found)
