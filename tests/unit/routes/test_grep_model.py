"""Grep with patterns of a model: what it sees, what it may write, and what happens without a usable reply."""

import json

import pytest

from core.analysis.passage_trace import PassageTrace
from core.backends.grep import patterns
from core.backends.terms import Analyzer
from tests import asking
from tests.asking import spans
from tests.fakes import TEXTS

QUESTION = "Why does my parcel wait at the border?"


def written(*pairs):
    return json.dumps({"patterns": [{"match": match, "text": text} for match, text in pairs]})


def ask(tmp_path, *replies, **parameters):
    left = list(replies)
    write = {"write-patterns": lambda _: left.pop(0) if len(left) > 1 else left[0]}
    return asking.ask(tmp_path, "grep_model", QUESTION, write, **parameters)


def test_the_model_sees_counts_and_no_passage_and_writes_again_once(tmp_path):
    first = written(("word", "customs"), ("beginning", "border"), ("phrase", "business day"))
    result, llm = ask(tmp_path, first, written(("beginning", "invoic")))
    counts = {"customs": 1, "border*": 0, "business day": 2}  # counted by hand in TEXTS
    assert spans(result, "count matches")[0].output.value == counts
    assert [request.prompt for request in llm.requests] == ["write-patterns/1"] * 2
    told = llm.requests[1].messages[-1].content
    assert told.endswith("Patterns tried: customs: 1\nborder*: 0\nbusiness day: 2")
    assert not any(text in message.content for text in TEXTS.values() for message in llm.requests[1].messages)
    assert [hit.passage.id for hit in result.hits] == ["customs:0-80"]


@pytest.mark.parametrize(
    "bad", ["no JSON", "[]", written(), written(("word", " * ")), written(("word", "x" * 61))]
)
def test_unusable_replies_leave_what_was_tried_or_the_question_and_are_noted(tmp_path, bad):
    result, llm = ask(tmp_path, bad)
    assert (result.status, len(llm.requests)) == ("ok", 4)
    own = [str(one) for one in patterns(QUESTION, Analyzer("none"))]
    first, second = spans(result, "write patterns")
    assert first.output.texts == (", ".join(own),)
    assert "note" in first.attributes
    assert "note" in second.attributes
    assert second.output.texts == ("parcel*, the",), "the others are nowhere"


@pytest.mark.parametrize("text", ["(a+)+$", "(?:.*){50}x", "[", "\\", "business\nday"])
def test_an_expression_is_a_text(tmp_path, text):
    result, _ = ask(tmp_path, written(("phrase", text), ("word", text), ("beginning", text)))
    assert (result.status, result.error) == ("ok", None)
    assert bool(result.hits) is (text == "business\nday")


def test_it_writes_no_more_patterns_than_allowed(tmp_path):
    many = written(*(("word", f"word{n}") for n in range(20)), ("word", "customs"))
    result, _ = ask(tmp_path, many, patterns=3)
    assert spans(result, "write patterns")[0].output.texts == ("word0, word1, word2",)
    assert result.hits == ()
    fate = PassageTrace(result).fate("customs:0-80", 10)
    assert (fate.kind, fate.step.name) == ("never retrieved", "grep the source text")
