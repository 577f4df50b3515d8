"""Answers copied from passages: nothing is added, everything cited was shown, and when there is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.prompting.citations import NOT_ANSWERED, markers, unmarked
from core.domain.types import AnswerStyle
from core.steps.generate import MAX_SENTENCE_CHARS, NEAR_ENOUGH, SENTENCES, share
from tests.asking import ask, span
from tests.fakes import TEXTS, MemoryCorpus, ScriptedLLM

COPIED = AnswerStyle(by="extract")
HOSTILE = st.text(st.sampled_from("abc ABC.!?[]12,\n<|>é☃\u202e"), min_size=1, max_size=60).filter(str.strip)


def copied(home, question, texts=TEXTS):
    llm = ScriptedLLM(missing="no model")
    result, _ = ask(home, "dense", question, llm, answers="all", style=COPIED, options={"texts": texts})
    assert (result.status, result.error) == ("ok", None)
    return result


def step(result):
    return span(result, "copy the best sentences")


@given(st.lists(HOSTILE, min_size=1, max_size=7), HOSTILE)
def test_every_word_stands_in_a_passage_and_every_citation_was_shown(tmp_path_factory, texts, question):
    named = {f"p{n}:0-1": text for n, text in enumerate([*texts, f"{question} {texts[0]}"])}
    result = copied(tmp_path_factory.getbasetemp(), question, named)
    shown = [hit.passage for hit in result.hits[:5]]
    assert set(result.citations) <= {passage.id for passage in shown}
    if result.abstained:
        assert (result.answer, result.citations) == (NOT_ANSWERED, ())
        return
    known = set(re.findall(r"\w+", " ".join(passage.text for passage in shown)))
    assert set(re.findall(r"\w+", re.sub(r"\[[1-5]\]", " ", unmarked(result.answer)))) <= known
    assert 1 <= len(step(result).attributes["scores"]) <= SENTENCES


def test_the_sentence_that_answers_is_copied_with_its_marker(tmp_path):
    result = copied(tmp_path, "How long are idempotency keys stored, 24 hours?")
    text = TEXTS["keys:0-80"]
    number = [hit.passage.id for hit in result.hits].index("keys:0-80") + 1
    assert f"{text} [{number}]" in result.answer
    assert "keys:0-80" in result.citations
    assert markers(result.answer)
    assert step(result).output.evidence >= NEAR_ENOUGH
    assert step(result).output.shown == tuple(hit.passage.id for hit in result.hits[:5])


def test_where_no_passage_is_near_there_is_no_answer_and_the_step_says_so(tmp_path):
    result = copied(tmp_path, "Who composed the opera about a barber?")
    assert (result.answer, result.abstained, result.citations) == (NOT_ANSWERED, True, ())
    told = step(result)
    assert told.output.evidence < told.output.floor == NEAR_ENOUGH
    assert "near enough" in told.attributes["note"]


def test_without_a_sentence_there_is_nothing_to_copy(tmp_path):
    result = copied(tmp_path, "What?", {"a:0-3": "...", "b:0-3": " \n- "})
    assert result.abstained
    assert step(result).attributes["note"] == "there is no sentence to copy"


def test_a_repeated_sentence_is_copied_once_and_a_long_one_is_cut(tmp_path):
    result = copied(tmp_path, "keys", {"a:0-1": "Keys keys.", "b:0-1": "Keys keys."})
    assert result.answer == "Keys keys. [1]"
    result = copied(tmp_path, "keys", {"a:0-1": "keys " * 300})
    assert result.answer == ("keys " * 300)[:MAX_SENTENCE_CHARS].rstrip() + " [1]"


def test_the_fit_by_hand(tmp_path):
    """The best passage has both words of the question, and its cosine with it is that of the embedder."""
    texts = {"a:0-1": "alpha beta gamma", "b:0-1": "delta"}
    corpus = MemoryCorpus(texts)
    result = copied(tmp_path, "alpha beta", texts)
    cosine = float(corpus.matrix[0] @ corpus.embedder.embed_query("alpha beta"))
    assert step(result).output.evidence == pytest.approx((cosine + 1) / 2, abs=1e-6)


def test_the_share_of_the_words_asked_for():
    assert share({"a": 3.0, "b": 1.0}, {"a", "c"}) == 0.75
    assert share({"a": 3.0}, set()) == 0.0
    assert share({}, {"a"}) == 0.0
    assert share({"a": 0.0}, {"a"}) == 0.0
