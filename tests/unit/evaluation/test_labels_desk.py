"""Label sets in the store: judging, undoing, two people at once, and a process that is killed."""

import re
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.types import Passage, Query, Turn
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.store import Store
from core.store.labels import Judgement, Pooled
from core.store.postgres import Dsn

ROOT = Path(__file__).resolve().parents[3]
QUESTIONS = (
    Question("q1", Query("How long?", (Turn("user", "Hello."),)), "plain", "dev", "48", None, ("48",), True),
    Question("q2", Query("Why?"), sql="SELECT 1"),
)


def passage(id, text="Some words."):
    return Passage(id, id.split(":")[0], "Title", text, 0, len(text))


@pytest.fixture
def store(store_place):
    store = Store(store_place)
    desks.create(store, "set", "tiny", QUESTIONS)
    found = [Pooled(passage(f"a:{n}"), (("bm25", n),)) for n in range(1, 4)]
    desks.add_to_pool(store, "set", {"q1": found, "q2": found[:1]})
    yield store
    store.close()


def said(passage="a:1", who="Ann", grade=2, question="q1", source="person", kind="grade", **more):
    return Judgement(question, passage, who, source, kind, grade if kind == "grade" else None, **more)


def current(store):
    return [
        (j.question, j.passage, j.annotator, j.source, j.kind, j.grade)
        for j in desks.load(store, "set").current
    ]


def test_a_set_comes_back_as_it_was_made(store):
    desk = desks.load(store, "set")
    assert (desk.set.name, desk.set.corpus, desk.set.relevant_from) == ("set", "tiny", 2)
    assert desk.set.guidelines == desks.DEFAULT
    assert desk.questions == QUESTIONS
    assert desk.pool["q1"]["a:3"] == Pooled(passage("a:3"), (("bm25", 3),))
    assert (set(desk.pool["q1"]), set(desk.pool["q2"])) == ({"a:1", "a:2", "a:3"}, {"a:1"})
    assert (desk.judgements, desk.current, desk.annotators(), desk.models()) == ((), (), (), ())


def test_the_newest_of_an_annotator_holds_and_every_one_is_kept(store):
    numbers = [desks.judge(store, "set", one) for one in (said(), said(grade=0), said(who="Bob", grade=3))]
    assert numbers == sorted(set(numbers))
    desk = desks.load(store, "set")
    assert [j.number for j in desk.judgements] == numbers
    assert all(j.created.endswith("+00:00") for j in desk.judgements)
    assert current(store) == [
        ("q1", "a:1", "Ann", "person", "grade", 0),
        ("q1", "a:1", "Bob", "person", "grade", 3),
    ]
    assert desk.annotators() == ("Ann", "Bob")


def test_undo_brings_back_what_held_before_again_and_again(store):
    for one in (said(grade=1), said(kind="later", passage="a:2"), said(grade=3), said(kind="cannot")):
        desks.judge(store, "set", one)
    desks.judge(store, "set", said(who="Bob", grade=0))
    undone = []
    while (one := desks.undo(store, "set", "Ann")) is not None:
        undone.append((one.kind, one.grade, one.passage))
    assert undone == [
        ("cannot", None, "a:1"),
        ("grade", 3, "a:1"),
        ("later", None, "a:2"),
        ("grade", 1, "a:1"),
    ]
    assert current(store) == [("q1", "a:1", "Bob", "person", "grade", 0)]
    assert len(desks.load(store, "set").judgements) == 9, "what was taken back is kept too"
    desks.judge(store, "set", said(grade=2))
    assert desks.load(store, "set").by("Ann")["q1", "a:1"].grade == 2


WHERE, WHO, SOURCE = map(st.sampled_from, (["a:1", "a:2"], ["Ann", "Bob"], ["person", "adjudication"]))
ACTS = st.one_of(st.tuples(WHERE, WHO, SOURCE, st.integers(0, 3)), st.tuples(st.just("undo"), WHO))


@pytest.mark.slow
@given(st.lists(ACTS, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_undo_is_as_if_it_had_never_been_said(tmp_path_factory, acts):
    """Against a model that simply forgets."""
    store = Store(tmp_path_factory.mktemp("labels") / "a.sqlite")
    desks.create(store, "set", "tiny", QUESTIONS)
    desks.add_to_pool(store, "set", {"q1": [Pooled(passage("a:1")), Pooled(passage("a:2"))]})
    kept = []
    for act in acts:
        if act[0] == "undo":
            mine = [one for one in kept if one[1] == act[1]]
            undone = desks.undo(store, "set", act[1])
            assert (undone and (undone.passage, undone.annotator, undone.source, undone.grade)) == (
                mine[-1] if mine else None
            )
            if mine:
                kept.reverse()
                kept.remove(mine[-1])
                kept.reverse()
        else:
            where, who, source, grade = act
            desks.judge(store, "set", said(where, who, grade, source=source))
            kept.append(act)
    expected = {(where, who, source): grade for where, who, source, grade in kept}
    found = desks.load(store, "set").current
    assert {(j.passage, j.annotator, j.source): j.grade for j in found} == expected
    store.close()


def test_an_adjudication_stands_beside_the_own_judgement(store):
    desks.judge(store, "set", said(grade=1))
    desks.judge(store, "set", said(grade=3, source="adjudication"))
    desk = desks.load(store, "set")
    assert desk.by("Ann")["q1", "a:1"].grade == 1
    assert desk.adjudicated()["q1", "a:1"].grade == 3
    desks.judge(store, "set", said(who="model:scripted", source="model"))
    desk = desks.load(store, "set")
    assert (desk.annotators(), desk.models()) == (("Ann",), ("model:scripted",)), "a model is no annotator"
    assert desks.undo(store, "set", "Ann").source == "adjudication"
    assert desks.load(store, "set").adjudicated() == {}


def test_what_is_not_allowed_is_refused_by_name(store):
    for wrong, told in (
        (said(grade=4), "grade 4; give 0, 1, 2, 3"),
        (said(grade=True), "grade True; give"),
        (said(grade=None), "grade None; give"),
        (replace(said(kind="later"), grade=1), "only 'grade' has one"),
        (said(kind="maybe"), "kind 'maybe'; give grade, cannot, later, withdrawn"),
        (said(source="oracle"), "source 'oracle'; give person, model, import, adjudication"),
        (said(who=" "), "annotator ' ': give a name of 1 to 64"),
        (said(who="x" * 65), "give a name of 1 to 64"),
        (said(who="model:x"), "names of models begin with 'model:'"),
        (said(source="model"), "names of models begin with 'model:'"),
        (said(passage="b:1"), "'b:1' was not found for question 'q1'"),
        (said(passage="a:2", question="q2"), "'a:2' was not found for question 'q2'"),
        (said(question="q3"), "no question 'q3'"),
        (said(note="x" * 20_001), "20,000 characters"),
    ):
        with pytest.raises(BadInput, match=re.escape(told)):
            desks.judge_all(store, "set", [said(), wrong])
    assert desks.load(store, "set").judgements == (), "all or none"


def test_a_set_that_cannot_be_made_is_refused_by_name(store):
    for more, told in (
        ({"name": " "}, "label set ' ': give a name"),
        ({"name": "set"}, "'set' exists already"),
        ({"questions": []}, "0 questions; a label set has 1 to 10,000"),
        ({"questions": [QUESTIONS[0], QUESTIONS[0]]}, "'q1' belongs to 2 questions"),
        ({"questions": [Question("q", Query(" "))]}, "question 'q': give an id, and a text"),
        ({"questions": [Question("", Query("Why?"))]}, "question '': give an id"),
        ({"relevant_from": 0}, "relevant_from=0; a passage is relevant from grade 1, 2 or 3"),
        ({"guidelines": "x" * 20_001}, "20,000 characters"),
    ):
        with pytest.raises(BadInput, match=told):
            desks.create(store, **{"name": "new", "corpus": "tiny", "questions": QUESTIONS, **more})
    assert [one.name for one in desks.sets(store)] == ["set"]


def test_a_deleted_set_comes_back_whole(store):
    desks.judge(store, "set", said())
    desks.set_deleted(store, "set", True)
    assert (desks.sets(store), [one.name for one in desks.sets(store, deleted=True)]) == ((), ["set"])
    for call in (desks.load, partial(desks.set_deleted, deleted=True), desks.version):
        with pytest.raises(BadInput, match="was deleted"):
            call(store, "set")
    with pytest.raises(BadInput, match="was deleted"):
        desks.judge(store, "set", said())
    with pytest.raises(BadInput, match="was deleted; restore it"):
        desks.create(store, "set", "tiny", QUESTIONS)
    desks.set_deleted(store, "set", False)
    assert current(store) == [("q1", "a:1", "Ann", "person", "grade", 2)]
    with pytest.raises(BadInput, match="is not deleted"):
        desks.set_deleted(store, "set", False)
    with pytest.raises(BadInput, match="no label set 'other'; there are: set"):
        desks.load(store, "other")


def test_pooling_again_adds_and_loses_nothing(store):
    more = [
        Pooled(passage("a:1", "Other words."), (("bm25", 9), ("dense", 1))),
        Pooled(passage("b:1"), (("dense", 2),)),
    ]
    assert desks.add_to_pool(store, "set", {"q1": more}) == 1
    pool = desks.load(store, "set").pool["q1"]
    assert pool["a:1"] == Pooled(passage("a:1"), (("bm25", 1), ("dense", 1)))
    assert pool["b:1"] == more[1]
    assert len(pool) == 4
    with pytest.raises(BadInput, match="no question 'q9'"):
        desks.add_to_pool(store, "set", {"q1": [Pooled(passage("c:1"))], "q9": more})
    assert "c:1" not in desks.load(store, "set").pool["q1"]


def test_the_version_changes_with_everything_and_with_nothing_else(store):
    other = Store(store.path)
    seen = [desks.version(store, "set")]
    changes = [
        lambda: desks.judge(other, "set", said()),
        lambda: desks.undo(other, "set", "Ann"),
        lambda: desks.set_guidelines(other, "set", "Be strict."),
        lambda: desks.add_to_pool(other, "set", {"q1": [Pooled(passage("b:1"))]}),
        lambda: desks.add_to_pool(other, "set", {"q1": [Pooled(passage("b:1"), (("dense", 3),))]}),
    ]
    for change in changes:
        change()
        seen.append(desks.version(store, "set"))
    assert len(set(seen)) == len(seen)
    desks.add_to_pool(other, "set", {"q1": [Pooled(passage("b:1"), (("dense", 1),))]})
    assert desks.undo(other, "set", "Ann") is None
    desks.create(other, "second", "tiny", QUESTIONS)
    assert desks.version(store, "set") == seen[-1]
    other.close()


def test_any_text_is_kept(store):
    odd = "caf\u00e9 \ud83d \x00 \u202e'; DROP TABLE judgements"
    desks.create(store, odd, odd, [Question(odd, Query(odd, (Turn("user", odd),)))], guidelines=odd)
    desks.add_to_pool(store, odd, {odd: [Pooled(Passage(odd, odd, odd, odd, 0, 9), ((odd, 1),))]})
    name = desks.clean_name(odd, "set")
    desks.judge(store, name, Judgement(odd, odd, name, "person", "grade", 1, odd))
    desk = desks.load(store, name)
    assert desk.questions == (Question(odd, Query(odd, (Turn("user", odd),))),)
    assert desk.pool == {odd: {odd: Pooled(Passage(odd, odd, odd, odd, 0, 9), ((odd, 1),))}}
    assert (desk.current[0].note, desk.current[0].annotator) == (odd, name)


JUDGING = """
import sys
from pathlib import Path
from core.evaluation.labels import desk
from core.store.labels import Judgement
from core.store import Store
from core.store.files import place_of

store = Store(place_of(sys.argv[1]))
for n in range(int(sys.argv[3])):
    judgement = Judgement("q1", f"a:{n % 3 + 1}", sys.argv[2], "person", "grade", n % 4, f"note {n}")
    print(desk.judge(store, "set", judgement), n, flush=True)
"""


def address(place):
    """The place as another process is told of it."""
    return place.conninfo() if isinstance(place, Dsn) else str(place)


def judging(store, who, count):
    return subprocess.Popen(
        [sys.executable, "-c", JUDGING, address(store.path), who, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.process
def test_a_killed_process_loses_no_judgement_that_it_was_told_of(store):
    process = judging(store, "Ann", 100_000)
    said = [process.stdout.readline().split() for _ in range(25)]
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    said += [line.split() for line in rest[: rest.rfind("\n") + 1].splitlines()]
    process.wait()
    process.stderr.close()
    kept = {j.number: j for j in desks.load(Store(store.path), "set").judgements}
    for number, n in said:
        one = kept[int(number)]
        assert (one.note, one.grade, one.passage) == (f"note {n}", int(n) % 4, f"a:{int(n) % 3 + 1}")
    assert len(kept) - len(said) in (0, 1), "at most the one that it was not told of"
