"""Grades given on hits: stored as labels of the question, and taken back by the same grade."""

import pytest

from core.domain import people
from core.domain.errors import BadInput, NotAllowed
from core.domain.people import Person
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.final import final
from core.evaluation.labels.run_labels import grade, grade_set
from tests.runs import make_run


@pytest.fixture(scope="module")
def run():
    return make_run(mishaps=False, run_id="good", corpus="tiny")


def grades(store, name):
    return {pair[1]: one.grade for pair, one in final(desks.load(store, name)).items()}


def test_a_grade_makes_a_set_and_the_same_grade_takes_it_back(store, run):
    one, other = list(run.passages)[:2]
    grade(store, run, one, "ann", 2)
    grade(store, run, other, "ann", 0)
    name = grade_set("tiny")
    assert grades(store, name) == {one: 2, other: 0}
    assert [question.query for question in desks.load(store, name).questions] == [run.query]
    assert grade(store, run, one, "ann", 3).grade == 3
    assert grades(store, name)[one] == 3
    assert grade(store, run, one, "ann", 3).kind == "withdrawn"
    assert grades(store, name)[one] == 2, "the grade before it counts again"


def test_a_grade_goes_into_the_set_that_has_the_question(store, run):
    desks.create(store, "ours", "tiny", [Question("q1", run.query)])
    passage = next(iter(run.passages))
    assert grade(store, run, passage, "ann", 1).question == "q1"
    assert grades(store, "ours") == {passage: 1}
    assert [one.name for one in desks.sets(store)] == ["ours"]
    found = desks.load(store, "ours").pool["q1"][passage].found
    assert set(found) == {
        (result.route, at)
        for result in run.results
        for at, hit in enumerate(result.hits, 1)
        if hit.passage.id == passage
    }


def test_what_is_not_allowed_leaves_nothing_behind(store, run):
    passage = next(iter(run.passages))
    for wrong in ((passage, 4), ("nowhere", 1)):
        with pytest.raises(BadInput):
            grade(store, run, wrong[0], "ann", wrong[1])
    with people.acting(Person("eve@example.org", "viewer")), pytest.raises(NotAllowed):
        grade(store, run, passage, "eve@example.org", 1)
    with people.acting(Person("lea@example.org", "labeller")):
        with pytest.raises(NotAllowed):
            grade(store, run, passage, "ann", 1)
        assert desks.sets(store) == ()
        assert grade(store, run, passage, "lea@example.org", 1).annotator == "lea@example.org"
