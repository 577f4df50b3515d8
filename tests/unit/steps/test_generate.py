"""How answers are written: when not, from what, in which order, and what is told of their citations."""

import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.answers import checked, decisions
from core.backends.prompting.citations import NOT_ANSWERED
from core.domain.errors import ModelFailed
from core.domain.types import Query
from core.engine.request import AnswerStyle, Request
from core.steps.generate import reading_order
from tests.asking import ask, prompts, span
from tests.fakes import FakeEngine, ScriptedLLM

QUESTION = Query("How long are idempotency keys stored?")


def asked(tmp_path, replies, *, question=QUESTION, style=None, **options):
    return ask(tmp_path, "hybrid_rrf", question, replies, answers="all", style=style, options=options)


def test_the_model_reads_numbered_passages_and_is_asked_first_whether_they_answer(tmp_path):
    result, llm = asked(tmp_path, {"evidence": "0.9", "answer": "For 24 hours [1]."})
    assert (result.answer, result.abstained) == ("For 24 hours [1].", False)
    assert result.citations == (result.hits[0].passage.id,)
    check, answer = llm.requests
    assert (check.prompt, answer.prompt) == ("evidence/1", "answer/2")
    first, second = (request.messages[-1].content for request in llm.requests)
    shared = first[: first.index("\n\nQuestion:")]
    assert second.startswith(shared), "what both calls read comes first, so that it is read once"
    assert shared.count("</passage ") == 5
    assert answer.messages[0] == check.messages[0]


@pytest.mark.parametrize(
    ("said", "decision", "why"),
    [
        ("0.57", "abstain", "P(Yes) 0.57 is below 0.58"),
        ("0.59", "answer", "P(Yes) 0.59 is at least 0.58"),
        ("Yes.", "answer", "from the word, as the endpoint gives no probabilities"),
        ("no", "abstain", "from the word, as the endpoint gives no probabilities"),
        ("Perhaps", "answer", "not checked: neither Yes nor No but 'Perhaps'"),
    ],
)
def test_evidence_is_held_against_its_threshold(tmp_path, said, decision, why):
    result, llm = asked(tmp_path, {"evidence": said, "answer": "For 24 hours [1]."})
    assert [one.output.decision for one in decisions(result)] == [decision]
    assert why in decisions(result)[0].output.why
    assert result.abstained == (decision == "abstain")
    assert result.answer == (NOT_ANSWERED if decision == "abstain" else "For 24 hours [1].")
    assert len(llm.requests) == (1 if decision == "abstain" else 2)
    assert (result.citations == ()) == (decision == "abstain")


def test_at_no_threshold_nothing_is_asked_beforehand(tmp_path):
    result, llm = asked(tmp_path, {"answer": "So [2]."}, style=AnswerStyle(evidence=0))
    assert prompts(llm) == ["answer/2"]
    assert result.citations == (result.hits[1].passage.id,)


def test_what_is_wrong_is_told_by_the_step_that_wrote_the_answer(tmp_path):
    """Not by another one with the same text, which may have read other passages."""
    text = "It is stored [1][9]. Nobody said this. And that [2, 12]."
    result, _ = asked(tmp_path, {"evidence": "0.9", "answer": text})
    own, found = span(result, "write answer"), checked(result)
    assert (found.written.wrong, found.written.uncited) == ((9, 12), ("Nobody said this.",))
    assert found.cited == {1: result.hits[0].passage.id, 2: result.hits[1].passage.id}
    other = replace(own, id=900, output=replace(own.output, wrong=(), uncited=(), shown=("x",)))
    twice = replace(result, spans=(*result.spans, other))
    assert checked(twice).written == own.output
    assert checked(replace(twice, answer_span=900)).written.shown == ("x",)
    by_hand = checked(replace(twice, answer_span=None))
    assert (by_hand.written.text, by_hand.written.wrong, by_hand.written.shown) == (text, (), ())


def test_the_models_own_abstention_counts(tmp_path):
    result, _ = asked(tmp_path, {"evidence": "0.9", "answer": "The passages do not mention this."})
    assert result.abstained
    assert result.citations == ()


def test_nothing_found_is_no_reason_to_ask_a_model(tmp_path):
    result, llm = asked(tmp_path, {}, texts={})
    assert (result.answer, result.abstained) == (NOT_ANSWERED, True)
    assert llm.requests == []
    assert "the model was not called" in span(result, "write answer").attributes["note"]


def test_a_model_that_fails_fails_the_answer_and_not_what_was_found(tmp_path):
    result, _ = asked(tmp_path, {"evidence": ModelFailed("the endpoint answered HTML")})
    assert (result.status, result.error, result.answer_status) == ("ok", None, "failed")
    assert "the endpoint answered HTML" in result.answer_error
    assert (result.answer, checked(result)) == (None, None)
    assert [(hit.passage.id, hit.score) for hit in result.hits] == list(
        span(result, "fuse by reciprocal rank").hits
    )


def test_an_answer_is_copied_without_a_model(tmp_path):
    style = AnswerStyle(by="extract")
    question = Query("Idempotency keys are stored for 24 hours with the response of the first attempt?")
    result, llm = asked(tmp_path, {}, question=question, style=style)
    assert llm.requests == []
    assert result.answer.startswith("Idempotency keys are stored for 24 hours")
    assert result.citations[0] == "keys:0-80"
    assert checked(result).written.copied
    assert not result.abstained


def test_the_order_of_reading_is_a_parameter_and_numbers_follow_it(tmp_path):
    style = AnswerStyle(order="best at both ends")
    result, llm = asked(tmp_path, {"evidence": "0.9", "answer": "So [5]."}, style=style)
    assert result.citations == (result.hits[1].passage.id,), "the second best stands last"
    told = llm.requests[-1].messages[-1].content
    texts = [hit.passage.text for hit in result.hits[:5]]
    assert sorted(texts, key=told.index) == [texts[n] for n in (0, 2, 4, 3, 1)]


@given(st.lists(st.integers(), unique=True, max_size=12))
def test_best_at_both_ends_keeps_each_and_puts_the_worst_into_the_middle(items):
    ordered = reading_order(items, "best at both ends")
    assert sorted(ordered) == sorted(items)
    assert reading_order(items, "best first") == tuple(items)
    places = [min(at, len(items) - 1 - at) for at in map(ordered.index, items)]
    assert places == sorted(places), "a better one never stands further in"


def test_the_text_can_be_read_while_it_is_written(tmp_path):
    seen, began = [], threading.Event()

    class Writing(ScriptedLLM):
        def complete(self, request, *, timeout, cancel, written=None):
            if written is not None:
                began.wait(60)
                for text in ("For", "For 24"):
                    written(text)
                    seen.extend(job.pending())
            return super().complete(request, timeout=timeout, cancel=cancel)

    from core.analysis.answers import being_written

    engine = FakeEngine(tmp_path, llm=Writing({"evidence": "0.9", "answer": "For 24 hours [1]."}))
    job = engine.start(Request(QUESTION, "tiny", ("bm25",), answers="all"))
    began.set()
    run = job.wait()
    assert [being_written(spans) for _, _, spans in seen] == ["For", "For 24"]
    assert run.results[0].answer == "For 24 hours [1]."
