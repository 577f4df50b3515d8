"""Iterative retrieval: which names it looks up, what it searches with, and each reason to stop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.types import Hit, Passage
from core.steps.iterate import collect
from core.steps.linked_names import CHARACTERS, WORDS, names
from tests import asking
from tests.asking import ids, outputs

QUESTION = "Which bus goes where the spring conference takes place?"
TEXTS = {
    "hotel:0-90": "The spring conference takes place in the Grand Quay, opened by the mayor of Lindow.",
    "bus:0-90": "Grand Quay: bus number 12 stops there every hour.",
    "town:0-90": "Lindow is a port of ten thousand people.",
    **{f"other{n}:0-90": f"The spring sale number {n} takes place." for n in range(8)},
}
TITLES = {"bus": "Grand Quay (Lindow)", "town": "Lindow", "hotel": "Spring conference"}


def ask(tmp_path, question=QUESTION, replies=None, texts=TEXTS, titles=TITLES, **more):
    return asking.ask(
        tmp_path, "iterative", question, replies, options={"texts": texts, "titles": titles}, **more
    )


def searched(result):
    return [span.args["text"] for span in result.spans if span.name == "search BM25"]


def decisions(result):
    named = ("go on or stop", "find a name to look up")
    return [span.output.decision for span in result.spans if span.name in named]


@given(
    st.lists(st.integers(0, 9), unique=True),
    st.lists(st.integers(0, 9), unique=True),
    st.integers(1, 5),
    st.integers(1, 8),
)
def test_collecting_keeps_order_and_caps(before, found, each, keep):
    def hits(numbers):
        return tuple(Hit(Passage(str(n), "d", "", ""), 1.0) for n in numbers)

    ids = [hit.passage.id for hit in collect(hits(before[:keep]), hits(found), each, keep)]
    expected = [str(n) for n in before[:keep]]
    for n in found[:each]:
        if len(expected) < keep and str(n) not in expected:
            expected.append(str(n))
    assert ids == expected


def test_a_name_that_a_passage_mentions_is_looked_up_and_its_passage_found(tmp_path):
    result, llm = ask(tmp_path, each=1, lead=1)
    assert (result.status, result.error) == ("ok", None)
    assert decisions(result)[:2] == ["go on", "look up"]
    first = outputs(result, "find a name to look up")[0]
    assert first.text.startswith("Grand Quay")
    assert {one["name"] for one in first.details["names"]} >= {"Grand Quay"}
    assert searched(result)[0] == QUESTION
    assert searched(result)[1] == first.text
    assert "bus:0-90" in ids(result)[:3]
    assert not llm.requests, "no model is asked"


@pytest.mark.parametrize(
    ("name", "title", "about"),
    [
        ("Grand Quay", "Quay profile: Grand Quay", True),
        ("Grand Quay", "Grand Quay: when boats leave on weekdays", True),
        ("GQ-12", "GQ-12 When boats leave on weekdays", True),
        ("GQ-12", "GQ-120 When boats leave on weekdays", False),
        ("2012", "2012 When boats leave on weekdays", False),
        ("Grand", "Grand When boats leave on weekdays", False),
    ],
)
def test_a_title_names_what_is_beside_its_colon_or_the_identifier_it_begins_with(
    tmp_path, name, title, about
):
    texts = TEXTS | {
        "hotel:0-90": f"The spring conference takes place in the {name}, opened by the mayor.",
        "bus:0-90": f"Boats to {name} stop every hour.",
    }
    result, _ = ask(tmp_path, texts=texts, titles=TITLES | {"bus": title}, threshold=0.0, steps=1)
    (missing,) = outputs(result, "find a name to look up")
    matches = {one["match"] for one in missing.details["names"] if one["about"] == "bus:0-90"}
    assert (1.0 in matches) == about


@pytest.mark.parametrize(("bearers", "looked_up"), [(3, True), (4, False)])
def test_what_many_documents_are_called_is_no_name(tmp_path, bearers, looked_up):
    numbers = range(bearers)
    texts = TEXTS | {
        "hotel:0-90": "The spring conference takes place in the Timetable, opened by the mayor.",
        **{f"stop{n}:0-90": f"Timetable number {n} of the boats." for n in numbers},
    }
    titles = TITLES | {f"stop{n}": f"Timetable: boats of pier {n}" for n in numbers}
    result, _ = ask(tmp_path, texts=texts, titles=titles, threshold=0.0, steps=1)
    (missing,) = outputs(result, "find a name to look up")
    assert ("Timetable" in {one["name"] for one in missing.details["names"]}) == looked_up


@pytest.mark.parametrize("forced", ["", "nothing missing", "look up"])
def test_a_name_is_looked_up_from_a_score_on_or_as_forced(tmp_path, forced):
    turned = {"find a name to look up": forced} if forced else None
    threshold = 0.0 if forced == "nothing missing" else 1.0
    result, _ = ask(tmp_path, forced=turned, threshold=threshold, steps=1, each=1)
    assert len(searched(result)) == 1 + (forced == "look up")
    if not forced:
        assert decisions(result) == ["go on", "nothing missing"]
        fused = next(span for span in result.spans if span.name == "fuse by normalised scores")
        assert [id for id, _ in fused.hits] == [hit.passage.id for hit in result.hits]


@given(st.text(max_size=200))
def test_names_are_bounded_pieces_of_the_sentence(sentence):
    found = names(sentence)
    assert len(set(found)) == len(found)
    for name in found:
        assert len(name) <= CHARACTERS
        assert len(name.split()) <= WORDS
        assert all(word in sentence for word in name.split())
