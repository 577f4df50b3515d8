"""Which of several passing routes is shipped: the whole order by cost, ties, and what cannot be compared."""

from dataclasses import replace

import pytest

from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.evaluation.comparison import Difference
from core.evaluation.release.criteria import Criteria
from core.evaluation.release.gate import candidate, decide
from core.evaluation.release.measured import find, of_evaluation, of_figures
from tests.released import at_prices, evaluation, failed, figures_of, outcome

pytestmark = pytest.mark.slow

BEST = Criteria(max_failed=None, no_loss=False, cheaper=False)
OPEN = replace(BEST, cheaper=True)
PRICES = (1.0, 10.0)  # of a million prompt and completion tokens


def one(rank=1, *, ms=10.0, calls=1, prompt=100, completion=10):
    return replace(outcome(rank, ms=ms, calls=calls, tokens=prompt), completion_tokens=completion)


def same(count=64, **more):
    return [one(**more) for _ in range(count)]


DEARER = {  # what costs more than `same(calls=2)` beyond tolerance, from the heaviest to the lightest
    "tokens": {"prompt": 150, "calls": 1, "ms": 1.0},
    "calls": {"calls": 3, "ms": 1.0},
    "time": {"calls": 2, "ms": 30.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("what", DEARER)
def test_of_equally_good_routes_the_cheapest_by_tokens_then_calls_then_time(tmp_path, what, turned):
    routes = {"bm25": same(calls=2), "dense": same(**DEARER[what])}
    order = dict(reversed(routes.items())) if turned else routes
    measured = of_evaluation(evaluation(tmp_path / "kept", order, baseline="bm25"))
    assert decide(measured, OPEN).verdict.equivalent == ("bm25", "dense")
    assert decide(measured, BEST).chosen == "bm25", "the best of equal means is the cheapest"


def test_a_route_that_has_no_question_in_common_with_the_best_cannot_be_shipped_over_it(tmp_path):
    """It is cheaper, and nobody can tell whether it is worse."""
    routes = {
        "bm25": [*(failed() for _ in range(40)), *same(40, ms=5.0)],
        "dense": [*same(40, ms=50.0), *(failed() for _ in range(40))],
    }
    routes["bm25"][-1] = one(2, ms=5.0)
    measured = of_evaluation(evaluation(tmp_path / "kept", routes))
    verdict = decide(measured, OPEN).verdict
    assert (verdict.decision, verdict.best_so_far.route, verdict.best_so_far.shown_margin) == (
        "undecided",
        "dense",
        None,
    )


def test_questions_that_failed_are_paid_by_those_that_ended_well(tmp_path):
    """Both found all they were asked; one needed twice the calls for each question that ended well."""
    broken = replace(failed(), calls=1, prompt_tokens=100, completion_tokens=10)
    routes = {"bm25": [*(broken for _ in range(64)), *same(64)], "dense": same(128, prompt=120)}
    measured = at_prices(evaluation(tmp_path / "kept", routes), *PRICES)
    assert [measured.of(route, "ndcg@10").calls for route in routes] == [2.0, 1.0]
    assert [measured.of(route, "ndcg@10").tokens for route in routes] == [220.0, 130.0]
    assert [measured.of(route, "ndcg@10").cost for route in routes] == [
        pytest.approx(0.4),
        pytest.approx(0.22),
    ]
    assert decide(measured, OPEN).chosen == "dense"


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
        assert (decision.verdict.decision, decision.chosen, decision.nearest) == ("undecided", None, "dense")


def test_what_is_not_known_of_a_cost_counts_as_the_dearest(tmp_path):
    evaluation(tmp_path / "kept", {"bm25": same(), "dense": same()})
    for key, value in (("p50_ms", None), ("prompt_tokens", 0)):
        figures = figures_of(tmp_path / "kept")
        figures["routes"]["bm25"][key] = value
        if key == "prompt_tokens":
            figures["routes"]["bm25"]["completion_tokens"] = 0
        decision = decide(of_figures(figures, "bent"), OPEN)
        assert decision.of("bm25").expense > decision.of("dense").expense
        assert decision.chosen == "dense"


# --- what the figures say, and what they leave open


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """40 questions of two kinds: dense is worse at all hard ones, and at one plain one."""
    folder = tmp_path_factory.mktemp("kept") / "two"
    dense = [one(2 if n % 2 or n == 0 else 1, ms=20.0) for n in range(40)]
    evaluation(folder, {"bm25": same(40), "dense": dense})
    return folder


def opened(folder, **changes):
    """The figures alone, changed: key -> value of the row of dense."""
    figures = figures_of(folder)
    figures["routes"]["dense"].update(changes)
    return of_figures(figures, "bent")


def check(measured, criteria, route="dense", nth=-1):
    return decide(measured, criteria).of(route).checks[nth]


def test_losses_of_the_figures_are_those_of_the_questions_as_far_as_they_tell(two):
    bare, whole = of_figures(figures_of(two), "bare"), find(Settings(home=two), str(two))
    assert [loss.blind for loss in bare.losses("ndcg@10")] == [False, False], "20 questions show a large one"
    for told, made in zip(bare.losses("ndcg@10"), whole.losses("ndcg@10"), strict=True):
        for name in ("route", "mode", "n", "verdict", "blind", "level"):
            assert getattr(told, name) == getattr(made, name)
        assert (told.delta, told.low, told.high) == pytest.approx((made.delta, made.low, made.high))
    assert list(whole.kinds()) == ["hard", "plain"]
    assert whole.kinds()["hard"] == [f"q{n}" for n in range(1, 40, 2)]
    assert bare.kinds() == {}
    found = check(of_figures(figures_of(two), "bare"), Criteria())
    assert (found.state, found.value, found.limit) == ("failed", 1.0, 0.0)
    assert found.told.startswith("worse on hard −0.369 (97.5% interval ")
    first = check(of_figures(figures_of(two), "bare"), Criteria(), "bm25")
    assert (first.state, first.told) == ("passed", "it is the baseline")
    even = Difference("dense", "", 20, 0.0, -0.123, 0.1, mode="plain")
    blind = replace(even, mode="hard", low=-0.9, blind=True)
    for found, said in (
        ([even], "none shown in 1 kind; elsewhere a loss of 0.123 is not excluded"),
        ([even, blind], "in 2 kinds; too few questions to show any: hard; elsewhere a loss of 0.123 is not"),
    ):
        check_ = candidate(of_figures(figures_of(two), "bare"), "dense", Criteria(), found).checks[-1]
        assert check_.state == "passed"
        assert said in check_.told
    figures = figures_of(two)
    assert {(loss.route, loss.mode) for loss in of_figures(figures, "bare").losses("ndcg@10")} == {
        ("dense", "plain"),
        ("dense", "hard"),
    }
    del figures["by_mode"]["hard"]["dense"]
    (found,) = of_figures(figures, "bent").losses("ndcg@10")
    assert (found.route, found.mode, found.n) == ("dense", "plain", 20)
    del figures["by_mode"]["plain"]["dense"]
    assert of_figures(figures, "bent").losses("ndcg@10") is None
    assert decide(of_figures(figures, "bent"), OPEN).losses == ()


@pytest.mark.parametrize(
    ("least", "ends", "state", "said"),
    [
        (0.80, [0.81, 0.9], "passed", "met by the lower end of the interval too"),
        (0.80, [0.80, 0.9], "passed", "met by the lower end of the interval too"),
        (0.80, [0.79, 0.9], "passed", "met by the mean only"),
        (0.80, None, "passed", "met by the mean only"),
        (0.85, [0.79, 0.9], "passed", "met by the mean only"),
        (0.86, [0.79, 0.9], "failed", "; its interval reaches the limit"),
        (0.90, [0.79, 0.9], "failed", "; its interval reaches the limit"),
        (0.91, [0.79, 0.9], "failed", "(95% interval 0.790 to 0.900, 40 questions)"),
        (0.91, None, "failed", "(40 questions)"),
        (None, [0.79, 0.9], "passed", "(95% interval 0.790 to 0.900, 40 questions)"),
    ],
)
def test_a_minimum_against_the_mean_and_its_interval(two, least, ends, state, said):
    measured = opened(two, **{"ndcg@10": 0.85, "ci95": {} if ends is None else {"ndcg@10": ends}})
    found = check(measured, replace(OPEN, minimum=least), nth=0)
    assert (found.state, found.value, found.limit) == (state, 0.85, least)
    assert found.told.endswith(said)
    assert found.told.startswith("0.850 (")


def test_a_limit_is_met_by_what_is_equal_to_it_and_missed_by_more(two):
    for name, limit, changes in (
        ("max_p95_ms", 100.0, {"p95_ms": 100.0}),
        ("max_calls", 2.0, {"llm_calls": 80}),
        ("max_tokens", 110.0, {}),
        ("max_failed", 0.5, {"failed": 20}),
        ("max_unjudged", 0.9, {"unjudged@10": 0.9}),
    ):
        for most, state in ((limit, "passed"), (limit * 0.99, "failed")):
            if name == "max_unjudged" and state == "failed":
                state = "cannot be told"  # more labels may show it to be met
            found = check(opened(two, **changes), replace(OPEN, **{name: most}))
            assert (found.state, found.value, found.limit) == (state, limit, most)
            away = {"passed": 0.0, "failed": pytest.approx(0.01 / 0.99), "cannot be told": 1.0}[state]
            assert found.short_by == away


def test_what_no_question_was_asked_of_is_told_by_none(two):
    figures = figures_of(two)
    figures["queries"] = 0
    figures["routes"]["dense"]["failed"] = 0
    bare = of_figures(figures, "bare")
    assert check(bare, replace(OPEN, max_failed=0.5)).told == "no question was asked"
    dense = bare.of("dense", "ndcg@10")
    assert (dense.failed, dense.calls, dense.tokens, dense.cost) == (None, None, None, None)
    figures["routes"]["dense"]["llm_calls"] = 0
    assert of_figures(figures, "bare").of("dense", "ndcg@10").cost is None


def test_answers_and_other_measures_have_values_means_and_counts(tmp_path):
    answered = [replace(one(), answer="It is so [1].", citations=("gold",)) for _ in range(20)]
    measured = of_evaluation(evaluation(tmp_path / "kept", {"bm25": answered, "dense": same(20)}))
    known, name = measured.metrics(), "citation_recall"
    assert {name, "ndcg@10"} <= set(known)
    assert not {"false_abstention", "unjudged@10"} & set(known), "less of them is better"
    assert measured.values(name) == {"bm25": {f"q{n}": 1.0 for n in range(20)}, "dense": {}}
    assert (measured.mean("bm25", name), measured.counted("bm25", name)) == (1.0, 20)
    low, high = measured.ends("bm25", name)
    assert (0.8 < low < 0.9, high) == (True, 1.0)
    assert (measured.mean("dense", name), measured.ends("dense", name)) == (None, None)
    assert measured.values("a measure of somebody else") is None


def test_a_measure_of_somebody_else_is_known_by_its_interval(two):
    figures = figures_of(two)
    figures["routes"]["dense"]["extra"] = {"faithful": 0.5, "ci95": {"faithful": [0.4, 0.6]}, "n": 7}
    measured = of_figures(figures, "bent")
    assert measured.metrics()[-1] == "faithful"
    assert (measured.mean("dense", "faithful"), measured.counted("dense", "faithful")) == (0.5, 7)
    assert measured.mean("bm25", "faithful") is None


def test_what_is_not_measured_yet_and_the_name_of_figures_alone(two, tmp_path):
    with pytest.raises(BadInput, match="route 'nobody' was not measured; there are: bm25, dense"):
        decide(of_figures(figures_of(two), "bare"), OPEN).of("nobody")
    with pytest.raises(BadInput, match="has no figures yet; wait until it finishes"):
        of_evaluation(replace(find(Settings(home=two), str(two)).evaluation, figures={}))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "metrics.json").write_text((two / "metrics.json").read_text())
    for place in (tmp_path / "mine", tmp_path / "mine" / "metrics.json"):
        found = find(Settings(home=tmp_path), str(place))
        assert (found.name, found.evaluation) == ("mine", None)
