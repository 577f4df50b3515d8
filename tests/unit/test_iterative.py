"""Interleaved retrieval and reasoning: what a round sends, collects and decides, and each reason to stop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.types import Hit, Passage, Query
from core.engine.engine import Request
from core.steps.iterate import collect, follow
from tests.fakes import TEXTS, FakeEngine, ScriptedLLM

QUESTION = "Which photos does a crushed box need?"


def ask(tmp_path, replies, question=QUESTION, texts=TEXTS, limits=None, answers="none", **parameters):
    llm = ScriptedLLM(replies)
    engine = FakeEngine(tmp_path, llm=llm, texts=texts, **(limits or {}))
    request = Request(Query(question), "tiny", ("iterative",), {"iterative": parameters}, answers=answers)
    return engine.ask(request).results[0], llm, engine


def sentences(*given):
    """Replies one after another; the last one stays."""
    left = list(given)
    return {"next-sentence": lambda _: left.pop(0) if len(left) > 1 else left[0]}


def decisions(result):
    return [
        span.output.decision for span in result.spans if span.name in ("go on or stop", "reason one sentence")
    ]


def test_it_searches_with_each_sentence_and_reads_what_was_collected_in_order(tmp_path):
    replies = sentences(
        "Customs may hold it.", "Idempotency keys are stored.", "So the answer is: six photos."
    )
    result, llm, engine = ask(tmp_path, replies, each=1)
    assert (result.status, result.error) == ("ok", None)
    assert engine.fakes["tiny"].searches == [QUESTION, "Customs may hold it.", "Idempotency keys are stored."]
    assert decisions(result) == ["go on", "search", "go on", "search", "go on", "answered"]
    first, second, third = (request.messages[-1].content for request in llm.requests)
    assert first.count("<passage ") == 1
    assert third.count("<passage ") == 3
    assert third.startswith(second.split("</passage 2>")[0]), "the passages before stay where they were"
    assert "Customs may hold it.\nIdempotency keys are stored.\nThe next sentence only:" in third
    assert [hit.passage.id for hit in result.hits[:3]] == ["crushed:0-80", "customs:0-80", "keys:0-80"]
    assert {hit.passage.id for hit in result.hits} == set(TEXTS)


@pytest.mark.parametrize(
    ("replies", "parameters", "limits", "reason"),
    [
        (["So the answer is: six."], {}, {}, "answered"),
        (["Customs may hold it.", "customs may hold it"], {}, {}, "repeated"),
        (["which photos does a crushed box need"], {}, {}, "repeated"),
        (["Crushed box photos."], {"each": 1}, {}, "nothing new"),
        (["Customs may hold it."], {"steps": 1}, {}, "steps used up"),
        (["Customs may hold it."], {}, {"route_max_calls": 2}, "budget spent"),
        (["Customs may hold it."], {}, {"route_max_tokens": 25}, "budget spent"),
    ],
)
def test_each_reason_to_stop(tmp_path, replies, parameters, limits, reason):
    result, _, _ = ask(tmp_path, sentences(*replies), limits=limits, **parameters)
    assert (result.status, result.error) == ("ok", None)
    assert decisions(result)[-1] == reason
    assert decisions(result).count(reason) == 1
    assert result.hits


def test_an_empty_corpus_asks_no_model(tmp_path):
    result, llm, _ = ask(tmp_path, {}, texts={})
    assert decisions(result) == ["nothing new"]
    assert (result.hits, llm.requests) == ((), [])


def test_the_answer_is_written_from_what_was_collected(tmp_path):
    replies = sentences("Customs may hold it.", "So the answer is: six.") | {"answer": "Six photos [1]."}
    result, llm, _ = ask(tmp_path, replies, answers="all", each=1)
    asked = llm.requests[-1]
    assert asked.messages[-1].content.count("<passage ") == 2
    assert (result.answer, result.citations) == ("Six photos [1].", ("crushed:0-80",))
    reasoned = next(r for r in reversed(llm.requests) if r.prompt == "next-sentence/1").messages
    assert asked.messages[0] == reasoned[0], "the same instruction and passages begin both prompts"
    assert asked.messages[1].content.split("</passage 2>")[0] == reasoned[1].content.split("</passage 2>")[0]


def test_a_budget_leaves_room_for_the_answer(tmp_path):
    replies = sentences("Customs may hold it.", "Keys are stored.") | {"answer": "Six photos [1]."}
    result, llm, _ = ask(tmp_path, replies, answers="all", each=1, limits={"route_max_calls": 6})
    assert [r.prompt.split("/")[0] for r in llm.requests].count("next-sentence") == 1
    assert decisions(result)[-1] == "budget spent"
    assert result.answer == "Six photos [1]."


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(1, 5))
def test_no_reply_makes_it_go_on_beyond_its_cap(tmp_path_factory, replies, steps):
    result, llm, _ = ask(tmp_path_factory.mktemp("cap"), sentences(*replies), steps=steps)
    assert result.status in ("ok", "failed")
    assert len([r for r in llm.requests if not r.prompt.endswith("firmer")]) <= steps
    assert decisions(result).count("search") <= steps


def test_only_the_first_sentence_of_a_reply_counts(tmp_path):
    _, _, engine = ask(tmp_path, sentences("Customs hold it [2]. Then it waits."), steps=1)
    assert engine.fakes["tiny"].searches[1] == "Customs hold it."


@pytest.mark.parametrize(
    ("sentence", "decision"),
    [
        ("So the answer is: 12.", "answered"),
        ("The ANSWER  is 12.", "answered"),
        ("The answering machine is off.", "search"),
        ("Who, then?", "repeated"),
        ("?!", "nothing new"),
    ],
)
def test_what_follows_from_a_sentence(sentence, decision):
    assert follow(sentence, ("who then", "B.")).decision == decision


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True),
       st.integers(1, 5), st.integers(1, 8))  # fmt: skip
def test_collecting_keeps_order_and_caps(before, found, each, keep):
    def hits(numbers):
        return tuple(Hit(Passage(str(n), "d", "", ""), 1.0) for n in numbers)

    ids = [hit.passage.id for hit in collect(hits(before[:keep]), hits(found), each, keep)]
    expected = [str(n) for n in before[:keep]]
    for n in found[:each]:
        if len(expected) < keep and str(n) not in expected:
            expected.append(str(n))
    assert ids == expected
