"""The best route of each question, who leads, Pareto fronts and disagreement: by hand and by brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.question_classifier import CLASSES
from core.cli.figures import figures_text
from core.domain.errors import BadInput
from core.domain.types import Query
from core.evaluation import comparison, costs, oracle, runner
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.oracle import CLASS_OF, routing, seen_in_training
from core.evaluation.summary import summarise
from tests.fakes import FakeEngine

M = "m"


def table(columns):
    """Route -> question -> {M: value}, from lists; None where the route was not scored."""
    return {
        route: {f"q{n}": {M: value} for n, value in enumerate(values) if value is not None}
        for route, values in columns.items()
    }


HAND = table({"a": [1.0, 0.0, 0.5, 0.2], "b": [0.0, 1.0, 0.5, None], "c": [0.4, 0.4, 0.4, 0.4]})


def test_the_oracle_by_hand():
    """Best of each question: 1, 1, .5, .4."""
    found = oracle.oracle(HAND, M)
    assert (found["mean"], found["n"]) == (pytest.approx(2.9 / 4), 4)
    regret, pairs = found["regret"], {tuple(pair["routes"]): pair for pair in found["pairs"]}
    assert list(regret) == ["a", "c", "b"]
    assert regret["a"]["mean"] == pytest.approx(1.2 / 4)  # 0, 1, 0, .2
    assert (regret["b"]["mean"], regret["b"]["n"]) == (pytest.approx(1 / 3), 3)
    assert [regret[name]["best"] for name in "abc"] == [2, 2, 1]
    assert len(pairs) == 3
    assert pairs["a", "b"]["mean"] == pytest.approx(2.5 / 3)  # over the three questions both have
    assert pairs["a", "b"]["gain"] == pytest.approx(2.5 / 3 - 0.5)
    assert pairs["a", "c"]["mean"] == pytest.approx((1 + 0.4 + 0.5 + 0.4) / 4)
    assert (pairs["a", "c"]["better"], pairs["b", "c"]["better"]) == ("a", "b")
    assert found["pairs"][0]["routes"] == ["a", "b"]
    assert oracle.oracle({"a": {}}, M) is None
    assert oracle.oracle(table({"a": [0.5]}), M)["pairs"] == []


def test_regret_is_that_of_the_router():
    turned = {}
    for route, by in HAND.items():
        for question, row in by.items():
            turned.setdefault(question, {})[route] = row[M]
    for route, one in oracle.oracle(HAND, M)["regret"].items():
        theirs = oracle.routing({}, {}, turned, route, M)["regret"]
        assert one == {key: theirs[key] for key in ("mean", "n", "ci95")} | {
            "route": route,
            "best": theirs["best"][route],
        }


@given(
    st.lists(
        st.lists(st.sampled_from([None, 0.0, 0.25, 0.5, 1.0]), min_size=4, max_size=4), min_size=2, max_size=6
    )
)
def test_no_route_and_no_pair_beats_the_oracle(rows):
    values = table({f"r{n}": [row[n] for row in rows] for n in range(4)})
    found = oracle.oracle(values, M)
    if found is None:
        assert not any(values.values())
        return
    means = [one["mean"] for one in found["regret"].values()]
    assert means == sorted(means)
    assert means[0] >= 0
    expected = {}
    for one, other in itertools.combinations(values, 2):
        both = [q for q in values[one] if q in values[other]]
        if both:
            a, b = ([values[route][q][M] for q in both] for route in (one, other))
            expected[one, other] = np.mean(np.maximum(a, b)) - max(np.mean(a), np.mean(b))
    gains = {tuple(pair["routes"]): pair["gain"] for pair in found["pairs"]}
    assert gains == pytest.approx(expected, abs=1e-12)
    assert list(gains.values()) == sorted(gains.values(), reverse=True)
    for pair in found["pairs"]:
        assert -1e-12 <= pair["ci95"][0] <= pair["ci95"][1]


@pytest.mark.parametrize(("n", "apart"), [(10, 0.0), (40, 0.0), (40, 0.3)])
def test_the_interval_of_a_gain_covers_the_true_gain(n, apart):
    """Uniform scores, those of one route times 1 - `apart`: the true gain is known."""
    rng = np.random.default_rng(4)
    both = rng.random((2, 200_000)) * np.array([[1.0], [1 - apart]])
    true = both.max(axis=0).mean() - both.mean(axis=1).max()
    inside = []
    for _ in range(400):
        a, b = rng.random((2, n)) * np.array([[1.0], [1 - apart]])
        (pair,) = oracle.oracle(table({"a": a.tolist(), "b": b.tolist()}), M)["pairs"]
        inside.append(pair["ci95"][0] <= true <= pair["ci95"][1])
    assert np.mean(inside) >= 0.93


NUMBERS = st.sampled_from([None, math.nan, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0])


@given(
    st.dictionaries(st.text("abcdefghij", min_size=1, max_size=2), st.tuples(NUMBERS, NUMBERS), max_size=12)
)
def test_a_front_is_what_nobody_beats(points):
    known = {name: one for name, one in points.items() if None not in one and not any(map(math.isnan, one))}
    beating = {
        name: {other for other, (q2, c2) in known.items() if q2 >= q and c2 <= c and (q2, c2) != (q, c)}
        for name, (q, c) in known.items()
    }
    found = costs.front(points)
    assert sorted(found) == sorted(name for name in known if not beating[name])
    amounts = [points[name][1] for name in found]
    assert amounts == sorted(amounts)
    for name in points:
        assert set(costs.beaten_by(points, name)) == beating.get(name, set()) & set(found)


def test_points_of_figures():
    row = {"ndcg@10": 0.5, "p50_ms": 12.0, "p95_ms": None, "statuses": {"ok": 3, "failed": 1}}
    row |= {"llm_calls": 6, "prompt_tokens": 90, "completion_tokens": 30}
    figures = {"routes": {"a": row, "b": {**row, "statuses": {"ok": 0}}}}
    for cost, amount in (("p50_ms", 12.0), ("p95_ms", None), ("calls", 1.5), ("tokens", 30.0)):
        assert costs.points(figures, "ndcg@10", cost)["a"] == (0.5, amount)
    assert costs.points(figures, "ndcg@10", "calls")["b"] == (0.5, None)
    with pytest.raises(ValueError, match="cost='euro'; there are: p50_ms, p95_ms, calls, tokens"):
        costs.points(figures, "ndcg@10", "euro")


def test_disagreement_by_hand():
    rankings = {
        "q0": {"a": ["x", "y"], "b": ["x", "y"], "c": ["y", "z"]},  # 1, 1/3, 1/3
        "q1": {"a": ["x"], "b": ["z"]},
        "q2": {"a": [], "b": []},
        "alone": {"a": ["x"]},
    }
    found = {one.question: one for one in comparison.disagreements(HAND, M, rankings)}
    assert found["q0"].spread == pytest.approx(1.0)
    assert found["q0"].apart == pytest.approx(1 - (1 + 1 / 3 + 1 / 3) / 3)
    assert found["q1"].apart == 1.0
    assert (found["q2"].apart, found["q2"].spread) == (0.0, pytest.approx(0.1))
    assert (found["q3"].apart, found["q3"].spread) == (None, pytest.approx(0.2))
    assert (found["alone"].apart, found["alone"].spread) == (None, None)
    order = [one.question for one in comparison.disagreements(HAND, M, rankings)]
    assert order == ["q1", "q0", "q3", "q2", "alone"]


MODES = {"a": "plain", "b": "abstract", "c": "multi_hop", "d": "multi_hop", "e": "no_answer", "f": "plain"}


def confusion(chosen, modes):
    return routing(chosen, modes, {}, "router", "m")


def test_a_confusion_by_hand():
    found = confusion({"a": "plain", "b": "conceptual", "c": "plain", "d": "complex", "e": "plain"}, MODES)
    rows = {
        label: dict(zip(CLASSES, row, strict=True))
        for label, row in zip(CLASSES, found["confusion"], strict=True)
    }
    assert rows["plain"]["plain"] == rows["conceptual"]["conceptual"] == rows["complex"]["complex"] == 1
    assert rows["complex"]["plain"] == 1
    assert (found["asked"], found["left_out"], found["accuracy"]) == (4, 2, 0.75)


def test_nothing_chosen_has_no_accuracy():
    assert confusion({}, MODES)["accuracy"] is None
    with pytest.raises(BadInput, match="a: 'odd' is no class; there are: no_retrieval"):
        confusion({"a": "odd"}, MODES)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(CLASS_OF)), st.sampled_from(CLASSES)), min_size=1, max_size=40)
)
def test_a_confusion_is_scikit_learns(pairs):
    metrics = pytest.importorskip("sklearn.metrics")
    found = confusion(
        {str(n): taken for n, (_, taken) in enumerate(pairs)},
        {str(n): mode for n, (mode, _) in enumerate(pairs)},
    )
    truth, taken = [CLASS_OF[mode] for mode, _ in pairs], [one for _, one in pairs]
    expected = metrics.confusion_matrix(truth, taken, labels=list(CLASSES))
    assert np.array_equal(np.array(found["confusion"]), expected)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(truth, taken))


def test_regret_by_hand():
    values = {
        "1": {"router": 0.5, "bm25": 0.75, "dense": 0.25},
        "2": {"router": 1.0, "bm25": 1.0, "dense": 0.0},
        "3": {"router": 0.25, "bm25": 0.0, "dense": 1.0},
        "4": {"bm25": 1.0},
    }
    found = routing({}, {}, values, "router", "m")["regret"]
    assert (found["mean"], found["n"]) == (pytest.approx(1 / 3), 3)
    assert found["best"] == {"router": 1, "bm25": 2, "dense": 1}
    low, high = found["ci95"]
    assert 0 <= low < found["mean"] < high <= 1
    alone = routing({}, {}, {"1": {"router": 1.0}}, "router", "m")
    assert alone["regret"]["ci95"] == [0.0, 1.0], "one question excludes nothing"
    assert "standing" not in alone
    assert "regret" not in routing({}, {}, values, "other", "m")


def test_figures_of_a_set_that_was_trained_on_come_with_those_held_out():
    held_out = [("support", 0.5, 10), ("support", 1.0, 30), ("other", 0.0, 30)]
    made = {
        "sets": {"support": 3},
        "held out": [{"set": name, "kind": "plain", "right": right, "n": n} for name, right, n in held_out],
        "regret held out": [{"set": "support", "standing": {"gain": {}}, "given": {}}],
    }
    seen = seen_in_training("support", made)
    assert (seen["right"], seen["asked"], seen["standing"]) == (pytest.approx(0.875), 40, {"gain": {}})
    assert seen_in_training("unseen", made) is seen_in_training("support", {}) is None


def test_an_evaluation_reports_it(tmp_path):
    questions = tuple(Question(str(n), Query("How long is the refund?"), mode="plain") for n in range(3))
    labelled = LabelledSet("one", questions, {str(n): {"returns:90-180": 1} for n in range(3)})
    names = ("bm25", "adaptive")
    outcomes, _ = runner.run(FakeEngine(tmp_path), labelled, runner.Plan("tiny", names))
    figures = summarise(labelled, outcomes, names)
    told = figures["routes"]["adaptive"]["routing"]
    assert (told["accuracy"], told["asked"]) == (1.0, 3)
    assert told["regret"]["n"] == 3
    assert "routing" not in figures["routes"]["bm25"]
    assert "accuracy" in figures_text({**figures, "sample": None}, None)
