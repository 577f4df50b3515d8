"""Answering without a search where the model is sure: probabilities, stated confidence, and no answer."""

import math

import pytest

from core.backends.base import Completion, TokenLogprob
from core.steps.confidence import no_answer, stated, token_confidence
from tests import asking
from tests.asking import prompts, span
from tests.fakes import ScriptedLLM

ASKED = "How many minutes has an hour?"
KNOWN = "An hour has 60 minutes."


class Sure(ScriptedLLM):
    """Gives the closed answer with these probabilities of its tokens, one a word; None: without any."""

    odds: tuple[float, ...] | None = None

    def complete(self, request, *, timeout, cancel, written=None):
        done = super().complete(request, timeout=timeout, cancel=cancel)
        if request.prompt != "closed-answer/1" or not request.top_logprobs or self.odds is None:
            return done
        tokens = tuple(
            TokenLogprob(word, math.log(p)) for word, p in zip(done.text.split(), self.odds, strict=True)
        )
        return Completion(done.text, done.model, "stop", 1.0, 10, 5, 0, tokens)


def ask(tmp_path, odds=None, closed=KNOWN, stated="85", threshold=0.9, **parameters):
    llm = Sure({"closed-answer": closed, "confidence": stated, "answer": "It is 48 hours [1]."})
    llm.odds = odds
    result, _ = asking.ask(tmp_path, "confidence", ASKED, llm, threshold=threshold, **parameters)
    assert (result.status, result.error) == ("ok", None)
    return result, span(result, "decide by confidence"), prompts(llm)


def test_a_sure_answer_stands_without_a_search(tmp_path):
    result, decided, asked = ask(tmp_path, (0.99, 0.95, 0.97, 0.92, 0.99))
    assert (result.answer, result.hits, result.citations) == (KNOWN, (), ())
    assert asked == ["closed-answer/1"]
    assert decided.output.decision == "answer without retrieval"
    mean = math.prod((0.99, 0.95, 0.97, 0.92, 0.99)) ** (1 / 5)
    assert decided.output.score == pytest.approx(mean)
    assert f"{mean:.2f} is at least 0.9" in decided.output.why
    assert "nothing was searched" in decided.output.why
    assert not any(span.kind == "RETRIEVER" for span in result.spans)


@pytest.mark.parametrize(("how", "searched"), [("mean", False), ("minimum", True)])
def test_one_improbable_token_counts_where_the_minimum_does(tmp_path, how, searched):
    result, decided, _ = ask(tmp_path, (1.0, 1.0, 0.7, 1.0, 1.0), how=how)
    assert bool(result.hits) is searched
    assert decided.output.details["by"] == how
    if searched:
        assert result.answer == "It is 48 hours [1]."
        assert result.citations == (result.hits[0].passage.id,)
        assert "0.70 is below 0.9" in decided.output.why


def test_the_threshold_itself_is_enough(tmp_path):
    _, decided, _ = ask(tmp_path, (0.5,) * 5, how="minimum", threshold=math.exp(math.log(0.5)))
    assert decided.output.decision == "answer without retrieval"


def test_without_probabilities_the_model_is_asked_and_that_is_told(tmp_path):
    _, decided, asked = ask(tmp_path, None, threshold=0.8)
    assert asked == ["closed-answer/1", "confidence/1"]
    assert (decided.output.details["by"], decided.output.score) == ("verbalised", 0.85)
    assert "gave no token probabilities" in decided.attributes["note"]
    _, decided, _ = ask(tmp_path, (0.1,) * 5, how="verbalised", threshold=0.8)
    assert decided.output.decision == "answer without retrieval"
    assert "note" not in decided.attributes


@pytest.mark.parametrize("reply", ["very sure", "between 80 and 90", "250", ""])
def test_a_confidence_that_is_not_stated_is_no_trust_and_no_number(tmp_path, reply):
    result, decided, asked = ask(tmp_path, None, stated=reply)
    assert asked[1:3] == ["confidence/1", "confidence/1/firmer"]
    assert (decided.output.decision, decided.output.score) == ("retrieve", None)
    assert result.hits


@pytest.mark.parametrize(
    "reply", ["unknown", "Unknown.", "I do not know.", "I'm sorry, but I can't assist with that."]
)
def test_no_answer_is_no_confidence_however_probable_its_tokens(tmp_path, reply):
    result, decided, asked = ask(tmp_path, (1.0,) * len(reply.split()), closed=reply, threshold=0.01)
    assert (decided.output.decision, decided.output.score) == ("retrieve", None)
    assert reply in decided.output.why
    assert asked == ["closed-answer/1", "evidence/1", "answer/2"]
    assert result.hits


def test_what_is_an_answer_and_what_is_none():
    assert not any(map(no_answer, [KNOWN, "Unknown to many, it is Bern.", "I know: 60."]))
    assert all(map(no_answer, ["", " \n", "don't know", "I cannot say.", "The passages do not say."]))


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("85", 0.85),
        ("85%", 0.85),
        ("Confidence: 7", 0.07),
        ("100/100", 1.0),
        ("0", 0.0),
        ("95.5", 0.955),
        ("101", None),
        ("-5", None),
        ("10 20", None),
        ("1000", None),
        ("none", None),
    ],
)
def test_a_stated_confidence_is_one_number_of_a_hundred(reply, value):
    assert stated(reply) == value


def test_only_tokens_with_letters_or_digits_count():
    tokens = [TokenLogprob(t, math.log(p)) for t, p in ((" Bern", 0.5), (".", 0.001), ("2", 0.8))]
    mean, least = token_confidence(tokens)
    assert (mean, least) == (pytest.approx(math.sqrt(0.4)), pytest.approx(0.5))
    assert token_confidence([TokenLogprob("?!", -1.0)]) is None
    assert token_confidence([]) is None


def test_without_a_calibration_the_model_is_not_asked_what_it_knows(tmp_path):
    result, llm = asking.ask(tmp_path, "confidence", ASKED, {"answer": "It is 48 hours [1]."})
    assert result.hits
    assert "closed-answer/1" not in prompts(llm)
    worth = span(result, "check the calibration").output
    assert worth.decision == "not calibrated"
    assert "was not calibrated for scripted" in worth.why
