"""Self-Route: what was found, the whole corpus, or no answer, by P(Yes) that the evidence is there."""

import pytest

from core.domain.types import Query
from tests.asking import ask, ids, prompts, span
from tests.fakes import TEXTS

QUESTION = Query("What do I do with a crushed box?")
LONG = {f"long{n}:0-9": "box " * 400 for n in range(20)}


def run(tmp_path, odds, texts=TEXTS, **parameters):
    replies = {"evidence": odds, "answer": "Take photos [2]."}
    result, llm = ask(tmp_path, "self_route", QUESTION, replies, options={"texts": texts}, **parameters)
    assert (result.status, result.error) == ("ok", None)
    return result, span(result, "is what was found enough").output, llm


def test_what_was_found_is_answered_from_where_it_is_enough(tmp_path):
    result, decided, llm = run(tmp_path, "0.9")
    assert decided.decision == "answer from what was found"
    assert decided.ways == ("answer from what was found", "read the whole corpus")
    assert (decided.score, decided.threshold) == (pytest.approx(0.9), pytest.approx(0.58))
    assert result.citations == (result.hits[1].passage.id,)
    assert prompts(llm) == ["evidence/1", "answer/2"]


def test_the_whole_corpus_is_read_where_it_is_not_and_what_is_cited_comes_first(tmp_path):
    result, decided, llm = run(tmp_path, "0.1")
    assert decided.decision == "read the whole corpus"
    sent = llm.requests[-1].messages[-1].content
    assert all(text in sent for text in TEXTS.values())
    assert result.citations == (sorted(TEXTS)[1],)
    found = ids(result)
    assert found[0] == sorted(TEXTS)[1]
    assert len(found) == len(set(found))


def test_a_corpus_that_does_not_fit_ends_without_an_answer(tmp_path):
    result, decided, llm = run(tmp_path, "0.1", LONG)
    assert (decided.decision, result.abstained) == ("abstain", True)
    assert decided.ways == ("answer from what was found", "abstain")
    assert "the model's context leaves" in decided.why
    assert result.hits
    assert prompts(llm) == ["evidence/1"]


def test_nothing_found_asks_whether_nothing_is_enough_of_no_model(tmp_path):
    result, decided, llm = run(tmp_path, "0.9", {})
    assert decided.decision == "read the whole corpus"  # which is empty, and fits
    assert result.abstained
    assert "nothing was found" in decided.why
    assert not llm.requests


@pytest.mark.parametrize(("threshold", "decision"), [(0.2, "answer from"), (0.4, "read the whole")])
def test_the_threshold_decides(tmp_path, threshold, decision):
    _, decided, _ = run(tmp_path, "0.3", threshold=threshold)
    assert decided.decision.startswith(decision)
