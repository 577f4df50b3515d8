"""What to label next: by rankings made by hand, by brute force over labels, and the queue it becomes."""

from contextlib import closing
from dataclasses import replace
from itertools import product
from math import log2

import pytest

from core.corpus.types import Document
from core.domain.errors import BadInput
from core.domain.types import Passage, Query
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import label_next
from core.evaluation.labels.final import final
from core.evaluation.outcome import Outcome
from core.store import Store
from core.store.labels import Judgement, Pooled
from tests.released import evaluation


def hits(*ids):
    return Outcome("ok", 1.0, tuple((id, 1.0 - n / 20) for n, id in enumerate(ids)))


def asked(count, **more):
    questions = tuple(Question(f"q{n}", Query(f"question {n}"), **more) for n in range(count))
    return LabelledSet("hand made", questions, {"q0": {"g": 1}, "q1": {"g": 1}})


@pytest.fixture
def made(tmp_path):
    """q0: all judged; q1: x at 1 against 3; q2: the same two passages in both; q3: nothing in common."""
    return evaluation(
        tmp_path / "kept",
        {
            "bm25": [hits("g"), hits("x", "g", "y"), hits("x", "y"), hits("a", "b")],
            "dense": [hits("g"), hits("y", "g", "x"), hits("x", "y"), hits("c", "d")],
        },
        asked=asked(4),
        alike=True,
    )


def test_the_questions_that_labels_can_change_come_first(made):
    found = label_next.of_evaluation(made, "bm25", "dense")
    assert [one.id for one in found] == ["q3", "q1"]  # q0 is judged, and q2 is the same for both
    third, first = found
    assert first.change == pytest.approx(2 * (1 - 1 / log2(4)))
    assert first.passages == ("x", "y")
    assert third.passages == ("a", "c", "b", "d")  # rank 1 decides more than rank 2
    assert (third.apart, third.labelled, first.labelled) == (1.0, False, True)
    assert first.document()["question"] == "question 1"
    for one in label_next.of_evaluation(made, "bm25", "dense"):
        lists = [[p for p, _ in made.outcomes[one.id][route].hits] for route in ("bm25", "dense")]
        pool = sorted({*lists[0], *lists[1]} - set(made.labelled.qrels.get(one.id, {})))
        spans = []
        for labels in product((0, 1), repeat=len(pool)):
            gain = dict(zip(pool, labels, strict=True))
            dcg = [sum(gain.get(p, 0) / log2(at + 1) for at, p in enumerate(ids, 1)) for ids in lists]
            spans.append(dcg[0] - dcg[1])
        assert one.change == pytest.approx(max(spans) - min(spans))


def test_questions_that_documents_do_not_answer_are_left_out(tmp_path):
    for more in ({"answerable": False}, {"mode": "no_retrieval"}):
        one = evaluation(
            tmp_path / next(iter(more)),
            {"bm25": [hits("a"), hits("b")], "dense": [hits("c"), hits("d")]},
            asked=asked(2, **more),
            alike=True,
        )
        assert label_next.of_evaluation(one, "bm25", "dense") == []


class Corpus:
    name = "tiny"

    def by_ids(self, ids, /):
        return {id: Passage(id, f"{id}.md", id, f"text of {id}", 0, 5) for id in ids if id != "gone"}

    def document(self, id, /):
        return Document(id, id, ""), []


@pytest.fixture
def store(store_place):
    with closing(Store(store_place)) as opened:
        yield opened


def test_the_queue_is_made_of_the_evaluation_and_keeps_its_labels(made, store):
    name, asked = label_next.begin(store, made, "bm25", "dense", Corpus())
    assert (name, asked) == ("hand made to settle", ("q3", "q1"))
    desk = desks.load(store, name)
    assert {pair: one.grade for pair, one in final(desk).items() if one.grade is not None} == {
        ("q0", "g"): 1,
        ("q1", "g"): 1,
    }
    assert set(desk.pool["q1"]) == {"g", "x", "y"}
    assert dict(desk.pool["q1"]["x"].found) == {"bm25": 1, "dense": 3}
    first = label_next.order(desk, made, "bm25", "dense")
    assert first == ("q3", "q1")
    order = label_next.order_for(desk, "me", first)
    assert [pair[0] for pair in order[:7]] == ["q3"] * 4 + ["q1"] * 3
    assert order[6] == ("q1", "g")  # judged already: the last of its question
    assert set(order) == set(label_next.order_for(desk, "me"))
    assert label_next.begin(store, made, "bm25", "dense", Corpus())[0] == name  # made once
    label_next.begin(store, made, "bm25", "dense", Corpus())
    desk = desks.load(store, "hand made to settle")
    extra = Question("extra", Query("not asked"))
    pool = {
        "extra": {
            p: Pooled(Corpus().by_ids([p])[p], ((route, 1),)) for route, p in (("bm25", "m"), ("dense", "n"))
        }
    }
    wider = replace(desk, questions=(*desk.questions, extra), pool={**desk.pool, **pool})
    assert label_next.order(wider, made, "bm25", "dense") == ("q3", "extra", "q1")


def test_the_set_of_the_evaluation_itself_is_used_unless_it_is_over_another_corpus(made, store):
    desks.create(store, "mine", "tiny", made.labelled.questions)
    spec = {**made.spec, "labels": "mine"}
    assert label_next.begin(store, replace(made, spec=spec), "bm25", "dense", Corpus())[0] == "mine"
    store_desk = desks.load(store, "mine")
    one = Judgement("q3", "a", "me", "person", "grade", 3)
    desks.judge(store, "mine", one)
    assert store_desk.pool["q3"].keys() == {"a", "b", "c", "d"}


def test_nothing_to_label_and_a_set_over_another_corpus_are_said(made, store):
    with pytest.raises(BadInput, match="labels cannot change their order"):
        label_next.begin(store, made, "bm25", "bm25", Corpus())
    labelled = replace(made.labelled, qrels={"q0": {"g": 7}})
    with pytest.raises(BadInput, match="grades that label sets do not have"):
        label_next.begin(store, replace(made, labelled=labelled), "bm25", "dense", Corpus())
    assert desks.sets(store) == ()
    desks.create(store, "mine", "elsewhere", made.labelled.questions)
    begun = replace(made, spec={**made.spec, "labels": "mine"})
    with pytest.raises(BadInput, match="over corpus elsewhere, not tiny"):
        label_next.begin(store, begun, "bm25", "dense", Corpus())
