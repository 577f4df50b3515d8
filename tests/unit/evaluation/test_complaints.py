"""From a complaint to a labelled question: kept, merged, undone, refused; and what the route itself shows."""

import threading
from dataclasses import replace

import pytest

from core.domain.errors import BadInput
from core.domain.types import Query, Turn
from core.evaluation.dataset import FAILURES, Question
from core.evaluation.gold import suggested
from core.evaluation.labels import desk as desks
from core.evaluation.labels import run_labels
from core.evaluation.labels.final import final
from core.evaluation.labels.run_labels import Report, complaint_set, report, undo
from core.store.labels import Judgement
from tests.runs import make_run

NAME = "regressions tiny"


@pytest.fixture(scope="module")
def run():
    return make_run(mishaps=False, run_id="good", corpus="tiny")


@pytest.fixture
def first(run):
    """A route of the run, and a passage that it found."""
    result = next(one for one in run.results if len(one.hits) > 2)
    return result.route, result.hits[1].passage


def said(run, route, passage=None, **more):
    return Report(run, route, **{"failure": "ranked too low", "who": "ann", "passage": passage, **more})


def test_the_first_complaint_makes_the_set_with_its_question(store, run, first):
    route, passage = first
    made = said(run, route, passage, answer="  42  days ", note="see ticket 7")
    kept = report(store, complaint_set("tiny"), made)
    assert (kept.set, kept.before, kept.graded) == (NAME, None, passage.id)
    assert kept.in_words() == f"Saved: the question is a new test in {NAME}."
    desk = desks.load(store, NAME)
    (question,) = desk.questions
    assert desk.set.corpus == "tiny"
    assert question.query == run.query
    assert (question.answers, question.answerable) == (("42 days",), True)
    (one,) = question.complaints
    assert (one.who, one.failure, one.run, one.route) == ("ann", "ranked too low", "good", route)
    assert (one.passage, one.note) == (passage.id, "see ticket 7")
    assert final(desk)[question.id, passage.id].grade == 3
    assert dict(desk.pool[question.id][passage.id].found)[route] == 2
    assert [one.set.name for one in run_labels.complaint_sets(store, "tiny")] == [NAME]
    assert run_labels.complaint_sets(store, "other") == []


def test_a_second_complaint_of_the_same_question_is_merged_with_both_names(store, run, first):
    route, passage = first
    report(store, NAME, said(run, route, passage, answer="42 days"))
    other = said(run, route, passage, who="bob", failure="wrong answer", answer="six weeks")
    kept = report(store, NAME, other)
    assert "ann had reported this question" in kept.in_words()
    (question,) = desks.load(store, NAME).questions
    assert [one.who for one in question.complaints] == ["ann", "bob"]
    assert question.answers == ("42 days", "six weeks")
    again = report(store, NAME, said(run, route, passage))
    assert (again.again, again.graded) == (True, "")
    assert again.in_words() == f"You have reported this in {NAME} already; nothing was added."
    assert len(desks.load(store, NAME).questions[0].complaints) == 2
    assert len(desks.load(store, NAME).questions) == 1


def test_other_turns_make_another_question_and_ids_of_others_are_not_taken(store, run, first):
    taken = run_labels.id_of(run.query)
    desks.create(store, NAME, "tiny", [Question(taken, Query("something else"))])
    other = replace(run, query=Query(run.query.text, (Turn("user", "something before"),)))
    ids = [report(store, NAME, said(one, first[0])).question.id for one in (run, other)]
    assert ids == [taken + "+", run_labels.id_of(other.query)]
    texts = [one.query.text for one in desks.load(store, NAME).questions]
    assert texts == ["something else", run.query.text, run.query.text]


def test_undo_takes_all_of_it_back_and_keeps_what_others_said_meanwhile(store, run, first):
    route, passage = first
    kept = report(store, NAME, said(run, route, passage))
    undo(store, kept)
    assert desks.sets(store) == ()  # the set was made for it
    with pytest.raises(BadInput, match="no label set"):
        undo(store, kept)
    kept = report(store, NAME, said(run, route, passage))  # the name is free again
    assert len(desks.load(store, NAME).questions) == 1
    desks.judge(store, NAME, Judgement(kept.question.id, passage.id, "bob", "person", "grade", 1))
    undo(store, kept)
    desk = desks.load(store, NAME)
    assert desk.questions[0].complaints == ()
    assert [(one.annotator, one.grade) for one in desk.current] == [("bob", 1)]


def test_undo_of_one_of_two_leaves_the_others_and_takes_its_answer_back(store, run, first):
    route, passage = first
    report(store, NAME, said(run, route, passage, answer="42 days"))

    def undone(failure, answer, *, later=()):
        """Bob complains, then others, and Bob takes it back."""
        kept = report(store, NAME, said(run, route, who="bob", failure=failure, answer=answer))
        before = desks.load(store, NAME).questions[0]
        for who, said_ in later:
            report(store, NAME, said(run, route, who=who, failure="wrong answer", answer=said_))
        undo(store, kept)
        with pytest.raises(BadInput, match="gone already"):
            undo(store, kept)
        (back,) = desks.load(store, NAME).questions
        return (before.answers, before.answerable), (back.answers, back.answer, back.answerable), back

    before, back, question = undone("should have abstained", "none")
    assert (before, back) == ((("42 days", "none"), False), (("42 days",), "42 days", True))
    assert [one.who for one in question.complaints] == ["ann"]
    assert [one.annotator for one in desks.load(store, NAME).current] == ["ann"]
    _, (answers, *_), question = undone("wrong answer", "six weeks", later=[("cid", "a year")])
    assert (answers, [one.who for one in question.complaints]) == (("42 days", "a year"), ["ann", "cid"])


def test_two_people_at_once_lose_nothing(store, run, first):
    route, passage = first
    threads = [
        threading.Thread(target=report, args=(store, NAME, said(run, route, passage, who=f"person {n}")))
        for n in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    (question,) = desks.load(store, NAME).questions
    assert {one.who for one in question.complaints} == {f"person {n}" for n in range(8)}
    assert len(desks.load(store, NAME).current) == 8


def test_what_is_not_allowed_is_said_and_changes_nothing(store, run, first):
    route, passage = first
    for wrong, words in (
        ({"failure": "ugly"}, "failure 'ugly'; give one of: not found"),
        ({"who": "  "}, "annotator"),
        ({"who": "model:x"}, "names that begin with 'model:'"),
        ({"answer": "x" * 3000}, "3,000 characters; give at most 2,000"),
        ({"note": "x" * 30_000}, "note"),
        ({"route": "nobody"}, "has no route 'nobody'; it has: "),
    ):
        with pytest.raises(BadInput, match=words):
            report(store, NAME, replace(said(run, route, passage), **wrong))
    with pytest.raises(BadInput, match="give a name of 1 to 64 characters"):
        report(store, " ", said(run, route))
    assert desks.sets(store) == ()


def test_the_name_of_a_set_over_another_corpus_or_deleted_runs_are_refused(store, run, first):
    desks.create(store, "taken", "elsewhere", [Question("q", Query("one"))])
    with pytest.raises(BadInput, match="over corpus elsewhere, not tiny; give another name"):
        report(store, "taken", said(run, first[0]))
    desks.set_deleted(store, "taken", True)
    with pytest.raises(BadInput, match="'taken' was deleted"):
        report(store, "taken", said(run, first[0]))
    store.save(run)
    store.flush()
    store.delete(run.id)
    with pytest.raises(BadInput, match="run good was deleted; undo that on Sessions"):
        report(store, NAME, said(run, first[0]))
    store.undelete(run.id)
    assert report(store, NAME, said(run, first[0])).before is None


def test_the_kind_is_what_the_run_shows(run, first):
    route, _ = first
    result = next(one for one in run.results if one.route == route)
    assert suggested(run, route, "nowhere") == "not found"
    assert suggested(run, "nobody") == "other"
    deep = [hit.passage.id for hit in result.hits[10:]]
    if deep:
        assert suggested(run, route, deep[0]) == "ranked too low"
    final_ids = {hit.passage.id for hit in result.hits}
    held = {id for span in result.spans for id, _ in span.hits or ()}
    for id in sorted(held - final_ids)[:3]:
        assert suggested(run, route, id) == "cut by a step"
    for one in run.results:
        assert suggested(run, one.route) in FAILURES
        answered = replace(run, results=(replace(one, answer="x", abstained=False),))
        assert suggested(answered, one.route) == "wrong answer"
