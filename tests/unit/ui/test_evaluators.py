"""The lightweight evaluator: what is stored, how it is trained, and whether its grades mean what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.evaluators import FEATURES, Evaluator, Which, logistic, read, trained
from core.backends.trained_files import write_trained
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Query
from core.engine.request import Request
from core.evaluation.calibration import reliability
from core.evaluation.dataset import LabelledSet, Question
from core.steps.evaluate import thresholds
from scripts.evaluator_training import Pairs, joined, measure, train, worth
from tests.fakes import FakeEngine
from ui.charts.grades import describe_reliability, reliability_curve

GIVEN = Evaluator(
    "lightweight",
    0.2,
    0.6,
    FEATURES,
    tuple(float(n) for n in range(len(FEATURES))),
    -1.5,
    "hash",
    {"date": "x"},
)


def pairs(count: int = 40, per: int = 6, seed: int = 0, name: str = "made") -> Pairs:
    """Questions whose passages are relevant where the first feature is high, with some noise."""
    random = np.random.default_rng(seed)
    features = random.uniform(0, 1, (count * per, len(FEATURES)))
    relevant = features[:, 0] + random.normal(0, 0.15, count * per) > 0.8
    question, rank = np.divmod(np.arange(count * per), per)
    return Pairs(name, "hash", features, relevant, question, rank)


@pytest.mark.parametrize("name", get_args(Which))
def test_what_is_shipped_can_be_read_and_says_how_it_was_made(name: Which) -> None:
    found = read(name)
    assert found.name == name
    assert 0 < found.low <= found.high < 1
    assert found.made["how"]
    if name == "lightweight":
        assert found.made["best of a question"]["auc"] > 0.8
        assert found.made["sets"] == ["support"]
        assert (
            sum(one["n"] for one in found.made["passages graded"]["bins"])
            == found.made["passages graded"]["n"]
        )


def test_one_trained_for_a_corpus_goes_first_there_alone(tmp_path: Path) -> None:
    write_trained(GIVEN, trained(tmp_path, "tiny"))
    own = read("lightweight", tmp_path, "tiny")
    assert (own.coefficients, own.low, own.high) == (GIVEN.coefficients, 0.2, 0.6)
    assert own.source == str(tmp_path / "evaluators" / "tiny.json")
    assert read("lightweight", tmp_path, "other") == read("lightweight")
    assert read("llm", tmp_path, "tiny").source == "data/evaluators/llm.json"
    run = FakeEngine(tmp_path).ask(Request(Query("My box arrived crushed"), "tiny", ("crag",)))
    verdict = next(span for span in run.results[0].spans if span.name == "grade and decide")
    assert (verdict.output.low, verdict.output.high) == pytest.approx((0.15, 0.65))  # a margin of .05
    assert "note" not in verdict.attributes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"low": 0.9}, "low <= high"),
        ({"high": 1.5}, "low <= high"),
        ({"low": float("nan")}, "low <= high"),
        ({"features": ["cosine"], "coefficients": [1]}, "its features are cosine"),
        ({"coefficients": [1.0]}, "1 coefficients for"),
        ({"coefficients": [float("inf")] * len(FEATURES)}, "finite"),
        ({"intercept": "much"}, "intercept: "),
        ({"name": "llm"}, "is the evaluator 'llm'"),
        ({"made": None}, "made: "),
    ],
)
def test_a_damaged_evaluator_is_refused_with_the_way_to_get_one(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = trained(tmp_path, "tiny")
    write_trained(GIVEN, path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(Unavailable, match=r"scripts\.evaluator") as caught:
        read("lightweight", tmp_path, "tiny")
    assert said in str(caught.value)
    for broken in ("", "[" * 99_999, "[]", "{}"):
        path.write_text(broken)
        with pytest.raises(Unavailable, match=r"tiny\.json"):
            read("lightweight", tmp_path, "tiny")


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_the_logistic_function_by_its_definition(values: list[float]) -> None:
    found = logistic(np.array(values))
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-np.array(values)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "used"),
    [
        (0, 0, (0.2, 0.6)),
        (0.3, 0, (0.3, 0.6)),
        (0.7, 0, (0.7, 0.7)),
        (0, 0.1, (0.1, 0.1)),
        (0, 0.9, (0.2, 0.9)),
        (0.5, 0.5, (0.5, 0.5)),
    ],
)
def test_a_threshold_of_nought_is_the_calibrated_one(
    low: float, high: float, used: tuple[float, float]
) -> None:
    assert thresholds(GIVEN, low, high) == used


def test_thresholds_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(BadInput, match=r"0\.9 is above the upper one 0\.1"):
        thresholds(GIVEN, 0.9, 0.1)


@pytest.mark.slow
def test_training_finds_the_feature_that_matters_and_is_the_same_each_time() -> None:
    made = train([pairs()])
    assert made.coefficients[0] > 3 * max(map(abs, made.coefficients[1:]))
    assert made.made["passages graded"]["auc"] > 0.9
    assert (made.made["questions"], made.made["passages"]) == (40, 240)
    assert 0 <= made.low <= made.high <= 1
    assert train([pairs()]) == made
    assert worth(made, pairs(seed=1))["passages graded"]["auc"] > 0.9


def test_sets_are_joined_without_mixing_their_questions() -> None:
    both = joined([pairs(count=3), pairs(count=4, seed=1, name="other")])
    assert len(np.unique(both.question)) == 7
    assert both.name == "made+other"
    other = Pairs("x", "another model", both.features, both.relevant, both.question, both.rank)
    with pytest.raises(BadInput, match="another model, hash"):
        joined([both, other])
    with pytest.raises(BadInput, match="no labelled set"):
        joined([])


def test_what_cannot_be_trained_on_is_refused() -> None:
    some = pairs(count=5)
    for wrong in (
        pairs(count=4),
        Pairs("x", "hash", some.features, np.zeros(30, bool), some.question, some.rank),
        Pairs("x", "hash", some.features, np.ones(30, bool), some.question, some.rank),
    ):
        with pytest.raises(BadInput, match="training needs at least 5 questions"):
            train([wrong])


def test_what_is_trained_on_is_what_a_route_grades_with(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    query = Query("My box arrived crushed")
    labelled = LabelledSet(
        "tiny", (Question("1", query), Question("2", Query("zzz"))), {"1": {"crushed:0-80": 2}}, 2
    )
    measured = measure(engine, labelled, "tiny")
    assert measured.relevant.sum() == 1
    assert set(measured.question.tolist()) == {0, 1}
    result = engine.ask(Request(query, "tiny", ("crag",))).results[0]
    shown = next(span.output.value for span in result.spans if span.name == "measure the passages")
    graded = measured.features[measured.question == 0][: len(shown)]
    assert graded.tolist() == [[row[name] for name in FEATURES] for row in shown]


def test_signals_stay_within_their_bounds_for_any_words(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    for text in ("", "?!", "zzz", "customs " * 400, "how do I send it back", "📦 \ud800"):
        do = engine.steps(engine.corpus("tiny"))
        hits = do.dense(text)
        rows = np.array(do.signals(text, hits[:3], hits[3:]))
        assert rows.shape == (3, len(FEATURES))
        assert np.isfinite(rows).all()
        assert ((rows[:, 2] >= 0) & (rows[:, 2] <= 1)).all()
        assert (rows[:, 1] >= 0).all()


def test_reliability_by_hand() -> None:
    grades, labels = [0.05, 0.05, 0.15, 0.95, 1.0], [False, True, False, True, True]
    found = reliability(grades, labels)
    assert [(round(one.low, 1), one.n, one.share) for one in found.bins] == [
        (0.0, 2, 0.5),
        (0.1, 1, 0.0),
        (0.9, 2, 1.0),
    ]
    assert found.ece == pytest.approx((2 * 0.45 + 0.15 + 2 * 0.025) / 5)
    assert found.brier == pytest.approx((0.05**2 + 0.95**2 + 0.15**2 + 0.05**2) / 5)
    assert found.n == 5


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60), st.integers(1, 12))
def test_reliability_counts_every_case_once(cases: list[tuple[float, bool]], bins: int) -> None:
    grades, labels = zip(*cases, strict=True)
    found = reliability(grades, labels, bins)
    assert sum(one.n for one in found.bins) == len(cases)
    assert sum(one.n * one.share for one in found.bins) == pytest.approx(sum(labels))
    assert sum(one.n * one.mean for one in found.bins) == pytest.approx(sum(grades))
    assert 0 <= found.ece <= 1
    assert 0 <= found.brier <= 1


@pytest.mark.parametrize("grades", [[], [0.5, 0.5], [1.2], [float("nan")]])
def test_grades_that_are_none_are_refused(grades: list[float]) -> None:
    with pytest.raises(BadInput):
        reliability(grades, [True])


def test_the_reliability_chart_draws_each_bin_and_is_told_in_words() -> None:
    curve = reliability([0.05, 0.15, 0.95, 0.95], [False, True, True, False])
    name = "<b>lightweight</b> on support test"
    figure = reliability_curve({name: curve, "llm": curve})
    drawn = figure.data[1]
    assert list(drawn.x) == pytest.approx([0.05, 0.15, 0.95])
    assert list(drawn.y) == [0.0, 1.0, 0.5]
    assert list(drawn.customdata) == [1, 1, 2]
    assert "<b>" not in drawn.name
    assert len(figure.data) == 3
    assert "4 cases" in describe_reliability({name: curve})
    assert len(reliability_curve({}).data) == 1
    assert "none" in describe_reliability({})
