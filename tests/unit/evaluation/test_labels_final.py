"""The grade that counts, and labels that follow their words when a corpus is cut anew."""

import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus.types import Document
from core.domain.errors import BadInput
from core.domain.relevance import unmatched_id
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.final import final, labelled_set
from core.store.labels import Judgement, Pooled
from tests.unit.evaluation.test_labels_agreement import desk, grades

WORDS = [f"word{n:03}" for n in range(90)]
TEXT = " ".join(WORDS)  # 8 characters a word


def count(made, passage="a"):
    one = final(made)["q1", passage]
    return one.grade, one.how, len(one.of)


def test_an_adjudicator_who_cannot_tell_leaves_it_unjudged_and_how_each_grade_came_about():
    made = desk(
        *grades("Ann", {"a": 1, "b": 2, "c": 0}),
        *grades("Bob", {"a": 3, "b": 2}),
        *grades("Eve", {"a": 3}, "import"),
        ("q1", "c", "Ann", "adjudication", "grade", 1),
        ("q1", "c", "Bob", "adjudication", "grade", 3),
        ("q1", "d", "Ann", "person", "cannot", None),
        ("q1", "d", "Bob", "person", "later", None),
        *grades("model:m", {"d": 3, "b": 0}, "model"),
    )
    assert count(made) == (3, "median", 3)
    assert count(made, "b") == (2, "all agree", 2)
    assert count(made, "c") == (3, "adjudicated", 1), "the newest"
    assert count(made, "d") == (None, "unjudged", 0)
    assert count(desk(*grades("Ann", {"a": 1}))) == (1, "one grade", 1)
    for kind, counted in (("cannot", (None, "adjudicated")), ("later", (1, "one grade"))):
        made = desk(*grades("Ann", {"a": 1}), ("q1", "a", "Bob", "adjudication", kind, None))
        assert count(made)[:2] == counted


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7))
def test_the_lower_median(values):
    made = desk(*(("q1", "a", f"A{n}", "person", "grade", grade) for n, grade in enumerate(values)))
    assert count(made)[0] == statistics.median_low(values)


# --- tied to a corpus as it is now


class Cut:
    """A corpus of documents cut into passages of so many words."""

    name = "tiny"

    def __init__(self, words, **documents):
        self.documents = documents or {"doc": TEXT}
        self.all = {}
        for id, text in self.documents.items():
            parts = text.split(" ")
            for at in range(0, len(parts), words):
                start = len(" ".join(parts[:at])) + (1 if at else 0)
                piece = " ".join(parts[at : at + words])
                end = start + len(piece)
                self.all[f"{id}:{start}-{end}"] = Passage(f"{id}:{start}-{end}", id, id, piece, start, end)

    def by_ids(self, ids):
        return {id: self.all[id] for id in ids if id in self.all}

    def document(self, id):
        if id not in self.documents:
            raise BadInput(f"corpus tiny has no document {id!r}")
        text = self.documents[id]
        return Document(id, id, text), [p for p in self.all.values() if p.doc_id == id]


def labelled(store, corpus, values):
    """A set over `corpus` with these grades, by the number of the passage."""
    desks.create(
        store, "set", "tiny", [Question("q1", Query("Why?"), split="dev"), Question("q2", Query("?"))]
    )
    passages = list(corpus.all.values())
    desks.add_to_pool(store, "set", {"q1": [Pooled(passages[n]) for n in values]})
    for n, grade in values.items():
        desks.judge(store, "set", Judgement("q1", passages[n].id, "Ann", "person", "grade", grade))
    return [p.id for p in passages]


def test_ids_that_are_there_keep_their_grades_and_nothing_is_said(store):
    ids = labelled(store, Cut(30), {0: 3, 2: 1})
    found, said = labelled_set(store, "set", Cut(30))
    assert (found.name, found.relevant_from, [q.id for q in found.questions]) == ("set", 2, ["q1", "q2"])
    assert found.qrels == {"q1": {ids[0]: 3, ids[2]: 1}}
    assert said == []
    assert found.labelled("q1")
    assert not found.labelled("q2")


def test_labels_follow_their_words_to_passages_that_hold_half_of_them(store):
    """Words 30 to 59 were judged; of passages of 20 words, 20-39 and 40-59 are left: one holds two thirds."""
    ids = labelled(store, Cut(30), {1: 3})
    found, said = labelled_set(store, "set", Cut(20))
    assert found.qrels == {"q1": {"doc:320-479": 3}}
    assert Cut(20).all["doc:320-479"].text == " ".join(WORDS[40:60])
    (told,) = said
    assert "1 label carried over" in told
    assert ids[1] in told


def test_words_that_moved_are_found_where_they_are_now(store):
    labelled(store, Cut(30), {1: 2})
    moved = " ".join([f"extra{n}" for n in range(30)] + WORDS)
    found, said = labelled_set(store, "set", Cut(45, doc=moved))
    ((id, grade),) = found.qrels["q1"].items()
    held = Cut(45, doc=moved).all[id].text
    assert grade == 2
    assert " ".join(WORDS[30:60]) in held
    assert "carried over" in said[0]
    assert "by place" not in said[0]


def test_where_the_words_have_changed_the_place_decides(store):
    ids = labelled(store, Cut(30), {1: 2})
    changed = " ".join(word.replace("word", "term") for word in WORDS)
    for words, id, told in (
        (20, "doc:320-479", "1 of them by place alone"),
        (30, ids[1], "1 judged passage changed"),
    ):
        found, said = labelled_set(store, "set", Cut(words, doc=changed))
        assert found.qrels == {"q1": {id: 2}}
        assert told in said[0]


def test_what_is_lost_is_counted_and_named_and_all_lost_is_an_error(store):
    both = Cut(30, doc=TEXT, gone=TEXT.replace("word", "other"))
    ids = labelled(store, both, {0: 3, 3: 2, 4: 1})
    found, said = labelled_set(store, "set", Cut(30))
    assert found.qrels == {"q1": {ids[0]: 3}}
    assert "2 labels lost" in said[0]
    assert ids[3] in said[0]
    with pytest.raises(BadInput, match="holds none of the 3 judged passages"):
        labelled_set(store, "set", Cut(30, elsewhere="nothing of it"))


def test_a_judged_passage_takes_over_no_grade_and_of_several_the_highest_holds(store):
    """Both kinds of cut were pooled: the whole document was judged 1 by itself, its parts 3 and 2."""
    parts, whole = Cut(45), Cut(90)
    passages = [*parts.all.values(), *whole.all.values()]
    desks.create(store, "set", "tiny", [Question("q1", Query("Why?"))])
    desks.add_to_pool(store, "set", {"q1": [Pooled(p) for p in passages]})
    for one, grade in zip(passages, (3, 2, 1), strict=True):
        desks.judge(store, "set", Judgement("q1", one.id, "Ann", "person", "grade", grade))
    assert labelled_set(store, "set", whole)[0].qrels == {"q1": {passages[2].id: 1}}
    desks.undo(store, "set", "Ann")
    found, said = labelled_set(store, "set", whole)
    assert found.qrels == {"q1": {passages[2].id: 3}}
    assert "2 labels carried over" in said[0]


def test_a_split_keeps_its_questions_and_without_any_split_all_are_of_test(store):
    ids = labelled(store, Cut(30), {0: 3})
    found, _ = labelled_set(store, "set", Cut(30), split="dev")
    assert ([q.id for q in found.questions], found.qrels) == (["q1"], {"q1": {ids[0]: 3}})
    with pytest.raises(BadInput, match="no questions of split 'test'; there are: dev, none, all"):
        labelled_set(store, "set", Cut(30), split="test")
    desks.create(store, "whole", "tiny", [Question(f"q{n}", Query(f"Why {n}?")) for n in (1, 2)])
    passage = next(iter(Cut(30).all.values()))
    desks.add_to_pool(store, "whole", {"q1": [Pooled(passage)]})
    desks.judge(store, "whole", Judgement("q1", passage.id, "Ann", "person", "grade", 3))
    assert [q.id for q in labelled_set(store, "whole", Cut(30), split="test")[0].questions] == ["q1", "q2"]
    with pytest.raises(BadInput, match="no questions of split 'dev'; there are: none, all"):
        labelled_set(store, "whole", Cut(30), split="dev")


def test_a_set_without_grades_is_nothing_to_measure_with(store):
    ids = labelled(store, Cut(30), {0: 3})
    desks.judge(store, "set", Judgement("q1", ids[0], "Ann", "person", "cannot"))
    with pytest.raises(BadInput, match="no graded passage yet; judge some"):
        labelled_set(store, "set", Cut(30))
    with pytest.raises(BadInput, match="no graded passage of split 'dev' yet"):
        labelled_set(store, "set", Cut(30), split="dev")


def test_disagreement_that_nobody_settled_and_another_corpus_are_said(store):
    ids = labelled(store, Cut(30), {0: 3})
    desks.judge(store, "set", Judgement("q1", ids[0], "Bob", "person", "grade", 1))
    other = Cut(30)
    other.name = "recut"
    found, said = labelled_set(store, "set", other)
    assert found.qrels == {"q1": {ids[0]: 1}}
    assert "made over corpus tiny, not recut" in said[0]
    assert "disagree on 1 passage" in said[1]
    desks.judge(store, "set", Judgement("q1", ids[0], "Eve", "adjudication", "grade", 2))
    assert labelled_set(store, "set", Cut(30)) == (replace(found, qrels={"q1": {ids[0]: 2}}), [])


def test_passages_that_no_corpus_has_keep_their_labels_and_it_is_said(store):
    """A pipeline of one's own returned them; once the corpus has their words, the label goes there."""
    ids = labelled(store, Cut(30), {0: 1})
    stranger = Passage(unmatched_id("wiki", "elsewhere"), "wiki", "", "Words of elsewhere.", 0, 19)
    desks.add_to_pool(store, "set", {"q1": [Pooled(stranger, (("mine", 1),))]})
    desks.judge(store, "set", Judgement("q1", stranger.id, "Ann", "person", "grade", 3))
    found, said = labelled_set(store, "set", Cut(30))
    assert found.qrels == {"q1": {ids[0]: 1, stranger.id: 3}}
    (told,) = said
    assert "1 label of passages that tiny does not have; only the pipelines that returned them" in told
    grown = Cut(30, doc=TEXT, wiki="Words of elsewhere.")
    assert labelled_set(store, "set", grown)[0].qrels == {"q1": {ids[0]: 1, "wiki:0-19": 3}}
