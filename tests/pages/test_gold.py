"""Grades of a labelled question: those that come with a corpus, and before them those that people made."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.domain.types import Query
from core.evaluation import gold as known
from core.evaluation.dataset import Question
from core.evaluation.labels import desk
from core.store.labels import Judgement, Pooled
from tests.fakes import TEXTS, MemoryCorpus
from tests.runs import make_run
from ui.components import gold

ASKED = Query("Who reports a crushed box?")


@pytest.fixture
def run(engine, monkeypatch):
    """A run of a question that a person labelled; the corpus' own file gives two grades."""
    corpus = MemoryCorpus(TEXTS)
    engine.fakes["tiny"] = corpus
    passages = [corpus.all[0], corpus.all[1]]
    desk.create(engine.store, "mine", "tiny", [Question("q1", ASKED)])
    desk.add_to_pool(engine.store, "mine", {"q1": [Pooled(one, (("bm25", 1),)) for one in passages]})
    desk.judge(engine.store, "mine", Judgement("q1", passages[0].id, "ann", "person", "grade", 3))
    state = SimpleNamespace(state="ready", fingerprint=corpus.fingerprint)
    monkeypatch.setattr(gold.catalogue, "describe", lambda *_: state)
    own = known.Gold({passages[0].id: 1, passages[1].id: 2}, relevant_from=1)
    monkeypatch.setattr(known, "_with_corpus", lambda *_: own)
    return replace(make_run(corpus="tiny"), query=ASKED), passages


def test_what_people_said_stands_before_what_came_with_the_corpus(run, engine):
    asked, (first, second) = run
    assert gold.gold_grades(asked) == {first.id: 3, second.id: 2}
    desk.judge(engine.store, "mine", Judgement("q1", second.id, "ann", "person", "grade", 0))
    assert gold.gold_grades(asked) == {first.id: 3, second.id: 0}
    desk.undo(engine.store, "mine", "ann")
    assert gold.gold_grades(asked) == {first.id: 3, second.id: 2}
    desk.set_deleted(engine.store, "mine", True)
    assert gold.gold_grades(asked) == {first.id: 1, second.id: 2}


def test_another_question_has_only_what_came_with_the_corpus(run):
    asked, (first, second) = run
    assert gold.gold_grades(replace(asked, query=Query("Another one?"))) == {first.id: 1, second.id: 2}


def test_a_set_that_nobody_graded_is_read_once(run, engine, monkeypatch):
    asked, (first, second) = run
    desk.create(engine.store, "empty", "tiny", [Question("q1", ASKED)])
    read, load = [], desk.load
    monkeypatch.setattr(desk, "load", lambda store, name: read.append(name) or load(store, name))
    for _ in range(3):
        assert gold.gold_grades(asked) == {first.id: 3, second.id: 2}
    assert read.count("empty") == 1, "once while nothing changes"
