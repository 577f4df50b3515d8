"""Where routes agree, against worked numbers."""

import pytest

from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import route_map
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.fakes import TEXTS, MemoryCorpus

FOUND = {
    "q1": {"one": ("a", "b"), "two": ("a", "b"), "three": ("x", "y")},
    "q2": {"one": ("a", "b"), "two": ("a", "c"), "three": ("y", "z")},
}


def test_routes_with_the_same_passages_are_one_group():
    made = route_map.groups(FOUND)
    assert [group.routes for group in made] == [("one", "two"), ("three",)]
    assert made[0].overlap == pytest.approx((1 + 1 / 3) / 2)
    assert [len(group.routes) for group in route_map.groups(FOUND, least=0.7)] == [1, 1, 1]
    assert route_map.groups({}) == []


def test_a_few_grades_decide_nothing_and_the_decision_says_so(tmp_path):
    corpus, store = MemoryCorpus(TEXTS), Store(tmp_path / "runs.sqlite")
    passages: list[Passage] = corpus.all[:3]
    desks.create(store, "own", "tiny", [Question("q1", Query("Who reports a crushed box?"))])
    pool = [Pooled(one, (("one", at), ("two", 4 - at))) for at, one in enumerate(passages, 1)]
    desks.add_to_pool(store, "own", {"q1": pool})
    desks.judge(store, "own", Judgement("q1", passages[0].id, "ann", "person", "grade", 3))
    found = route_map.rankings(desks.load(store, "own"))
    assert found["q1"]["one"] == tuple(one.id for one in passages)
    verdict = route_map.decision(store, "own", corpus, found)
    assert (verdict.decision, verdict.chosen, verdict.questions) == ("undecided", None, 1)
    assert verdict.best_so_far.route == "one"
    assert "few-questions" in {one.id for one in verdict.reasons}
    store.close()
