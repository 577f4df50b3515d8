"""The gate: decisions worked by hand, every criterion passed, failed and not to be told."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.settings import Settings
from core.evaluation import summary
from core.evaluation.comparison import EVERY, family_level
from core.evaluation.comparison import losses as losses_of
from core.evaluation.release.criteria import Criteria, command
from core.evaluation.release.gate import LABEL_MORE, candidate, decide
from core.evaluation.release.measured import find, of_evaluation, of_figures, settled
from core.evaluation.statistics import difference_interval
from core.evaluation.templating import say, sentences
from tests.released import at_prices, evaluation, failed, figures_of, labelled, outcome

pytestmark = pytest.mark.slow

OPEN = Criteria(max_failed=None, no_loss=False)


def state(decision, route, name):
    return next(one for one in decision.of(route).checks if one.name == name).state


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the evaluation of `three` is, to be read only."""
    return tmp_path_factory.mktemp("kept") / "three"


@pytest.fixture(scope="module")
def three(folder):
    """64 questions: bm25 finds the passage at rank 1 and 3 in turn; dense at 2; rerank at 1, by a model."""
    made = evaluation(
        folder,
        {
            "bm25": [outcome(1 if n % 2 else 3, ms=5.0) for n in range(64)],
            "dense": [outcome(2, ms=20.0) for _ in range(64)],
            "rerank": [outcome(1, ms=900.0 + n, calls=2, tokens=500) for n in range(64)],
        },
    )
    return of_evaluation(made)


def test_the_best_that_passes_is_shipped_and_where_none_does_each_lacks_something(three):
    verdict = decide(three, OPEN).verdict
    assert (verdict.decision, verdict.chosen, verdict.best_so_far.route) == ("ship", "rerank", "rerank")
    assert [one.id for one in verdict.reasons] == ["better-than-all"]
    assert {*verdict.behind} == {"bm25", "dense"}
    assert verdict.questions == 64
    # nDCG with one relevant passage is 1 / log2(rank + 1)
    assert three.mean("bm25", "ndcg@10") == pytest.approx((1 + 0.5) / 2)
    assert three.mean("dense", "ndcg@10") == pytest.approx(1 / math.log2(3))
    found = three.of("rerank", "ndcg@10")
    assert (found.tokens, found.calls) == (500, 2)
    assert found.p95_ms == pytest.approx(np.percentile([900.0 + n for n in range(64)], 95))
    document = json.loads(json.dumps(decide(three, OPEN).document(), allow_nan=False))
    assert (document["decision"], document["chosen"], document["margin"]) == ("ship", "rerank", 0.05)
    assert [row["passes"] for row in document["candidates"]] == [True, True, True]
    decision = decide(three, Criteria(max_p95_ms=100.0, max_failed=None, no_loss=False))
    assert decision.chosen == "bm25"
    assert {one.other for one in decision.verdict.pairs} == {"dense"}, "what misses a limit is no alternative"
    assert state(decision, "rerank", "p95") == "failed"
    assert {one.route: one.fails for one in decision.candidates} == {
        "bm25": False,
        "dense": False,
        "rerank": True,
    }
    decision = decide(three, Criteria(minimum=0.9, max_p95_ms=500.0, no_loss=False))
    assert decision.verdict.decision == "none"
    assert decision.headline.startswith("Nothing passes")
    assert decision.nearest == "bm25"  # one criterion each; 0.75 is nearer to 0.9 than 0.63, or 937 ms to 500
    assert "required at least 0.9" in sentences("decision.why", decision)[0]
    assert "required at most 500 ms" in say("decision.lacking", decision.of("rerank"))


def test_the_cheapest_of_the_equivalent_is_shipped_unless_switched_off(tmp_path):
    made = evaluation(
        tmp_path / "near",
        {
            "bm25": [outcome(2 if n else 3, ms=5.0) for n in range(70)],
            "dense": [outcome(2, ms=50.0) for _ in range(70)],
        },
    )
    measured = of_evaluation(made)
    decision = decide(measured, OPEN)
    assert (decision.verdict.decision, decision.verdict.equivalent) == ("equivalent", ("bm25", "dense"))
    assert (decision.verdict.best_so_far.route, decision.chosen) == ("dense", "bm25")
    (pair,) = decision.verdict.pairs
    assert pair.delta == pytest.approx((0.5 - 1 / math.log2(3)) / 70)
    assert (pair.low, pair.high) == pytest.approx(difference_interval([0.5 - 1 / math.log2(3)] + [0.0] * 69))
    best = decide(measured, replace(OPEN, cheaper=False))
    assert (best.verdict.decision, best.chosen) == ("ship", "dense")


def test_failed_questions_and_what_they_cost_are_counted_and_few_times_are_no_percentile(tmp_path):
    made = evaluation(
        tmp_path / "broken",
        {
            "bm25": [outcome(1) for _ in range(25)],
            "dense": [failed() for _ in range(5)] + [outcome(1, calls=1, tokens=100) for _ in range(20)],
        },
    )
    measured = of_evaluation(made)
    decision = decide(measured, Criteria(max_failed=0.1))
    assert state(decision, "dense", "failed") == "failed"
    assert measured.of("dense", "ndcg@10").failed == pytest.approx(0.2)
    assert state(decide(measured, Criteria(max_failed=0.2)), "dense", "failed") == "passed"
    assert measured.of("dense", "ndcg@10").tokens == 100  # the 20 that ended well bear all of it
    assert measured.of("dense", "ndcg@10").p95_ms is not None
    few = evaluation(tmp_path / "few", {"bm25": [outcome(1) for _ in range(19)]})
    undecided = decide(of_evaluation(few), Criteria(max_p95_ms=1000.0))
    assert state(undecided, "bm25", "p95") == "cannot be told"
    assert (undecided.verdict.decision, undecided.chosen) == ("undecided", None)


def test_a_route_with_more_tokens_of_a_cheaper_model_is_the_cheaper_one(tmp_path):
    by_route = {
        "small": [outcome(1, calls=1, tokens=900) for _ in range(70)],
        "large": [outcome(1, calls=1, tokens=100) for _ in range(70)],
    }
    prices = {"small": (1.0, 1.0), "large": (50.0, 50.0)}
    made = evaluation(tmp_path / "priced", by_route)

    def chosen(prices):
        figures = summary.summarise(made.labelled, made.outcomes, made.routes, prices=prices)
        gated = decide(of_evaluation(replace(made, figures={**made.figures, **figures})), OPEN)
        assert gated.chosen == figures["decision"]["chosen"]
        return gated.chosen

    assert chosen(prices) == "small"
    assert chosen({**prices, "large": (None, None)}) == "large"  # tokens, where one price is not known


def test_a_price_is_never_made_up(three):
    asked = Criteria(max_cost=1.0, max_failed=None, no_loss=False)
    decision = decide(three, asked)
    assert state(decision, "rerank", "cost of 1,000 questions") == "cannot be told"
    assert state(decision, "bm25", "cost of 1,000 questions") == "passed"  # it asks no model: 0 at any price
    priced = at_prices(three.evaluation, 2.0, 4.0)
    assert priced.of("rerank", "ndcg@10").cost == pytest.approx(1000 * 500 * 2.0 / 1e6)
    assert state(decide(priced, asked), "rerank", "cost of 1,000 questions") == "passed"
    half = at_prices(three.evaluation, 2.0, None)
    assert half.of("rerank", "ndcg@10").cost is None


def test_what_is_not_judged_or_not_asked_to_the_end_is_not_decidable(three, tmp_path):
    decision = decide(three, Criteria(max_unjudged=0.5))
    assert decision.verdict.decision == "undecided"
    assert LABEL_MORE in say("decision.lacking", decision.of("bm25"))
    assert [one.id for one in decision.verdict.reasons] == ["open-limits"]
    made = evaluation(tmp_path / "cut", {"bm25": [outcome(1) for _ in range(20)]}, more={"interrupted": True})
    decision = decide(of_evaluation(made), OPEN)
    assert decision.verdict.decision == "undecided"
    assert "stopped after 20 questions" in say("decision.lacking", decision.of("bm25"))


def test_no_label_and_calls_without_tokens_leave_checks_open(tmp_path):
    asked = labelled(20)
    bare = type(asked)(asked.name, asked.questions, {})
    made = evaluation(tmp_path / "bare", {"bm25": [outcome(1) for _ in range(20)]}, asked=bare)
    decision = decide(of_evaluation(made), Criteria(minimum=0.0, max_unjudged=1.0))
    assert state(decision, "bm25", "nDCG@10") == "cannot be told"
    assert state(decision, "bm25", "unjudged of the first ten") == "cannot be told"
    assert decision.chosen is None
    made = evaluation(tmp_path / "untold", {"bm25": [outcome(1, calls=1) for _ in range(20)]})
    decision = decide(at_prices(made, 1.0, 1.0), Criteria(max_tokens=10, max_cost=10))
    assert state(decision, "bm25", "tokens a question") == "cannot be told"
    assert state(decision, "bm25", "cost of 1,000 questions") == "cannot be told"


def lossy(tmp_path, count=40):
    """dense is better at plain questions and worse at hard ones, at all of them."""
    made = evaluation(
        tmp_path / f"lossy{count}",
        {
            "bm25": [outcome(2 + n % 3 if n % 2 == 0 else 1) for n in range(count)],
            "dense": [outcome(1 if n % 2 == 0 else 3) for n in range(count)],
            "mmr": [outcome(2 + n % 3 if n % 2 == 0 else 1) for n in range(count)],
        },
    )
    return of_evaluation(made)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return lossy(tmp_path_factory.mktemp("mixed"))


def test_a_loss_in_one_kind_of_question_fails(mixed):
    decision = decide(mixed, Criteria())
    assert state(decision, "dense", "no loss in any kind of question") == "failed"
    assert "worse on hard −0.500" in say("decision.lacking", decision.of("dense"))
    assert decision.verdict.best_so_far.route in ("bm25", "mmr")
    assert {one.other for one in decision.verdict.pairs} <= {"bm25", "mmr"}
    assert state(decision, "bm25", "no loss in any kind of question") == "passed"
    assert family_level([20, 20]) == pytest.approx(0.975)
    assert family_level([20, 2, 2, 2]) == pytest.approx(0.95)
    assert family_level([2]) == pytest.approx(0.95)


def test_a_loss_rests_on_its_interval_and_other_routes_cannot_hide_it(mixed):
    values = mixed.values("ndcg@10")
    of = mixed.kinds()
    for one in mixed.losses("ndcg@10"):
        apart = [values[one.route][q] - values["bm25"][q] for q in of[one.mode]]
        assert one.level == pytest.approx(0.975), "two kinds"
        assert (one.low, one.high) == pytest.approx(difference_interval(apart, level=one.level))
    alone = losses_of({route: values[route] for route in ("bm25", "dense")}, of, "bm25")
    crowd = losses_of({**values, **{f"copy{n}": values["mmr"] for n in range(50)}}, of, "bm25")
    assert set(alone) <= set(crowd)


def test_a_set_too_small_to_show_a_loss_says_so_and_one_without_kinds_is_one(tmp_path):
    decision = decide(lossy(tmp_path, 8), Criteria())
    assert state(decision, "dense", "no loss in any kind of question") == "passed"
    check = next(one for one in decision.of("dense").checks if one.name.startswith("no loss"))
    assert "too few questions to show any: hard, plain" in check.told
    assert {one.blind for one in decision.losses} == {True}
    made = evaluation(
        tmp_path / "kindless",
        {"bm25": [outcome(1) for _ in range(20)], "dense": [outcome(4) for _ in range(20)]},
        asked=labelled(20, modes=(None,)),
    )
    (found,) = of_evaluation(made).losses("ndcg@10")
    assert (found.mode, found.verdict) == (EVERY, "worse")


def test_figures_alone_decide_what_they_can(three, folder):
    bare = of_figures(figures_of(folder), "bare")
    for asked in (OPEN, Criteria(), Criteria(minimum=0.9, max_tokens=10)):
        full, alone = decide(three, asked), decide(bare, asked)
        assert [one.passes for one in alone.candidates] == [one.passes for one in full.candidates]
    # against the baseline the figures tell; between two others they do not
    alone = decide(bare, OPEN).verdict
    assert (alone.decision, alone.best_so_far.route) == ("undecided", "rerank")
    assert "no-question-values" in [one.id for one in alone.reasons]
    both = [decide(one.planned(["rerank"]), OPEN).verdict for one in (three, bare)]
    assert [one.chosen for one in both] == ["rerank", "rerank"]
    assert both[1].pairs[0].low == pytest.approx(both[0].pairs[0].low)
    figures = figures_of(folder)
    figures["by_mode"] = {}
    decision = decide(of_figures(figures, "bare"), Criteria())
    assert state(decision, "dense", "no loss in any kind of question") == "cannot be told"
    assert decision.chosen is None


def test_figures_that_are_none_are_refused(three, folder):
    for bend in (
        lambda f: f.pop("routes"),
        lambda f: f.update(routes={}),
        lambda f: f.update(baseline="nobody"),
        lambda f: f["routes"]["bm25"].pop("failed"),
        lambda f: f["routes"]["bm25"].update({"ndcg@10": "high"}),
    ):
        figures = figures_of(folder)
        bend(figures)
        with pytest.raises(BadInput, match=r"metrics\.json"):
            of_figures(figures, "bent")


def test_criteria_that_cannot_be_are_refused():
    wrong = {"max_failed": 1.2, "max_p95_ms": -1, "minimum": math.nan, "max_unjudged": "all", "no_loss": 1}
    wrong |= {"metric": "", "margin": -0.1, "min_questions": 0, "min_effect": 7}
    for name, value in wrong.items():
        with pytest.raises(BadInput, match=name):
            Criteria(**{name: value})


def test_limits_that_are_not_given_are_derived_and_met_by_the_baseline(three):
    with pytest.raises(BadInput, match=r"supported_accuracy.*ndcg@10"):
        decide(three, Criteria("supported_accuracy"))
    asked = settled(three, Criteria())
    assert asked.minimum == 0.75
    assert asked.max_p95_ms == 1000.0
    assert decide(three, asked).of("bm25").passes
    for limits, derived in (
        ({}, ("minimum", "max_p95_ms", "max_unjudged")),
        ({"minimum": 0.1, "max_failed": None}, ("max_p95_ms", "max_unjudged")),
        ({"max_unjudged": 0.0, "max_p95_ms": 5.0, "minimum": 0.0}, ()),
        ({"derive": False}, ()),
    ):
        asked = settled(three, Criteria(**limits))
        assert asked.derived == derived
        assert {name: getattr(asked, name) for name in limits} == limits
        assert sum("from the baseline" in one for one in sentences("decision.asked", asked)) == len(derived)
        assert settled(three, asked) == asked


def test_the_command_says_the_criteria():
    line = command(
        "my set",
        Criteria("map", 0.4, max_failed=None, no_loss=False, cheaper=False, margin=0.1, min_questions=30),
        report="r.md",
    )
    assert line == (
        "python -m core gate 'my set' --metric map --min-quality 0.4 --max-failed 1 --min-questions 30 "
        "--margin 0.1 --allow-loss --best --no-derive --report r.md"
    )


def test_an_evaluation_is_found_by_name_folder_and_file(three, folder, tmp_path):
    now = Settings(home=tmp_path / "home")
    assert find(now, str(folder)).evaluation is not None
    assert find(now, str(folder / "metrics.json")).evaluation is not None
    alone = tmp_path / "alone.json"
    alone.write_text((folder / "metrics.json").read_text())
    assert find(now, str(alone)).evaluation is None
    shutil.copytree(folder, tmp_path / "home" / "evaluations" / "named")
    assert find(now, "named").name == "named"
    with pytest.raises(BadInput, match="saved are: named"):
        find(now, "other")
    with pytest.raises(BadInput, match="contains no evaluation"):
        find(now, str(tmp_path / "home"))
    alone.write_text("{")
    with pytest.raises(BadInput, match="cannot be read as JSON"):
        find(now, str(alone))


RANKS = st.lists(st.sampled_from([1, 2, 3, 5, None]), min_size=21, max_size=21)
QUICK = settings(
    max_examples=max(8, settings().max_examples // 3),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@QUICK
@given(
    ranks=st.lists(RANKS, min_size=3, max_size=3),
    minimum=st.floats(0, 1),
    p95=st.floats(0, 40),
    unjudged=st.floats(0, 1),
    tighter=st.floats(0, 1),
)
def test_what_fails_is_never_chosen_and_tighter_limits_pass_no_more(
    tmp_path_factory, ranks, minimum, p95, unjudged, tighter
):
    routes = ("bm25", "dense", "rerank")
    made = evaluation(
        tmp_path_factory.mktemp("any"),
        {route: [outcome(rank, ms=10.0 * (n + 1)) for rank in ranks[n]] for n, route in enumerate(routes)},
    )
    measured = of_evaluation(made)
    found = measured.losses("ndcg@10")
    loose = Criteria(minimum=minimum, max_p95_ms=p95, max_unjudged=unjudged)
    tight = [
        Criteria(minimum=minimum + tighter, max_p95_ms=p95, max_unjudged=unjudged),
        Criteria(minimum=minimum, max_p95_ms=p95 * tighter, max_unjudged=unjudged),
        Criteria(minimum=minimum, max_p95_ms=p95, max_unjudged=unjudged * tighter),
        Criteria(minimum=minimum, max_p95_ms=p95, max_unjudged=unjudged, max_tokens=0),
    ]

    def passing_under(asked):
        return {route for route in routes if candidate(measured, route, asked, found).passes}

    passing = passing_under(loose)
    for asked in tight:
        assert passing_under(asked) <= passing
    decision = decide(measured, loose)
    assert decision.chosen is None, "21 questions ship nothing"
    few = decide(measured, replace(loose, min_questions=1, margin=1.0))
    assert few.chosen is None or few.chosen in passing
    assert few.nearest in routes


def test_a_judges_corrected_differences_decide_what_the_labels_alone_leave_open(tmp_path):
    """30 labelled questions, of which bm25 leads a little; 300 more are judged."""
    ranks = {
        "bm25": [outcome(1 + n % 3) for n in range(30)],
        "dense": [outcome(1 + n % 4) for n in range(30)],
    }
    pair = {"mean": 0.046, "ci95": [0.01, 0.082], "labels": 30, "equal_to": 120, "sd": 0.3}
    back = {**pair, "mean": -0.046, "ci95": [-0.082, -0.01]}
    corrected = {
        "metric": "ndcg@10",
        "labelled": 30,
        "unlabelled": 300,
        "auc": 0.95,
        "pairs": [
            {"route": "bm25", "other": "dense", **pair},
            {"route": "dense", "other": "bm25", **back},
        ],
    }
    alone = decide(of_evaluation(evaluation(tmp_path / "alone", ranks)), OPEN)
    assert alone.verdict.decision == "undecided"
    made = evaluation(tmp_path / "judged", ranks, more={"corrected": corrected})
    for measured in (of_evaluation(made), of_figures(made.figures, "judged")):
        found = decide(measured, OPEN).verdict
        assert (found.decision, found.chosen) == ("ship", "bm25")
        (one,) = found.pairs
        assert (one.n, one.delta, one.low, one.high) == (30, 0.046, 0.01, 0.082)
        assert [reason.id for reason in found.reasons] == ["better-than-all", "corrected"]
        assert "equivalent to 120 labels; people gave 30" in found.reasons[-1].text
    other = decide(of_evaluation(made), replace(OPEN, metric="recall@10")).verdict
    assert all(reason.id != "corrected" for reason in other.reasons)
    weak = evaluation(tmp_path / "weak", ranks, more={"corrected": {**corrected, "auc": 0.7}})
    assert "saves next to no labels" in decide(of_evaluation(weak), OPEN).verdict.reasons[-1].text
    nothing = evaluation(tmp_path / "none", ranks, more={"corrected": {**corrected, "pairs": []}})
    assert decide(of_evaluation(nothing), OPEN).verdict.decision == "undecided"
    drawn = evaluation(tmp_path / "drawn", ranks, more={"corrected": {**corrected, "drawn": True}})
    assert decide(of_evaluation(drawn), OPEN).verdict.chosen == "bm25"
    with pytest.raises(BadInput):
        decide(of_evaluation(drawn), replace(OPEN, metric="recall@10"))
