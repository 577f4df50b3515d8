"""Judging a router: by hand, and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.question_classifier import CLASSES
from core.cli.figures import figures_text
from core.domain.errors import BadInput
from core.domain.types import Query
from core.evaluation import runner
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.oracle import CLASS_OF, routing, seen_in_training
from core.evaluation.summary import summarise
from tests.fakes import FakeEngine

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
