"""The wire format by itself: every field of a request under its name, and what is read of an answer."""

import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import LLMRequest, Message, TokenLogprob
from core.backends.llm import completions, wire
from core.backends.llm.profile import TRUSTED
from core.backends.llm.text import looks_refused
from core.backends.prompting.replies import literal, one_of
from core.domain.errors import ModelFailed

ASK = LLMRequest("test/1", (Message("system", "Be brief."), Message("user", "Hi")), max_tokens=5, seed=3)
WORDS = wire.EndpointWords("tiny at test", ("sk-secret", ""))
BARE = {
    "model": "tiny",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    "max_tokens": 5,
    "temperature": ASK.temperature,
    "seed": 3,
}


def body(request=ASK, **more):
    return wire.body(request, model="tiny", **more)


def test_a_bare_request_has_these_fields_and_no_others_and_a_renamed_limit_its_other_name():
    assert body() == BARE
    limit = {key: value for key, value in BARE.items() if key != "max_tokens"}
    renamed = replace(TRUSTED, renamed={"max_tokens": "max_completion_tokens"})
    assert body(profile=renamed) == {**limit, "max_completion_tokens": 5}


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        (ASK, False),
        (replace(ASK, top_logprobs=1), True),
        (replace(ASK, reuse_prefix=True), True),
        (replace(ASK, top_logprobs=5, reuse_prefix=True), True),
    ],
)
def test_the_embedded_server_keeps_the_start_of_a_prompt_only_where_that_is_safe(request_, kept):
    assert body(request_, embedded=True)["extra_body"] == {"id_slot": 0, "cache_prompt": kept}
    assert "extra_body" not in body(request_)


# --- what comes back


def answered(content="Hello", message=None, **choice):
    said = {"message": {"content": content, **(message or {})}, "finish_reason": "stop", **choice}
    return {"model": "tiny-2", "choices": [said]}


def read(answer, request=ASK):
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return wire.read(data, request, WORDS, "tiny")


def refused(answer, request=ASK):
    with pytest.raises(ModelFailed) as caught:
        read(answer, request)
    return str(caught.value)


def test_an_answer_is_read_with_what_it_says_of_itself():
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    found = read({**answered(), "usage": usage})
    assert (found.text, found.model, found.finish) == ("Hello", "tiny-2", "stop")
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens) == (9, 2, 4)
    assert found.logprobs == ()


@pytest.mark.parametrize(
    "usage", [None, 3, {}, {"prompt_tokens": -1, "completion_tokens": "2", "prompt_tokens_details": [4]}]
)
def test_counts_that_are_not_told_or_are_none_are_0(usage):
    found = read({**answered(finish_reason=None), "usage": usage, "model": None})
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens) == (0, 0, 0)
    assert (found.model, found.finish) == ("tiny", "unknown"), "what was asked for, and what is known"
    assert {read({**answered(), "model": named}).model for named in ("", 3, ["tiny-2"])} == {"tiny"}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        *(
            ({"choices": choices}, "answered without a choice")
            for choices in (None, [], {}, {"a": 1}, "none", [None], [["a"]], 3)
        ),
        (
            {"error": {"message": "loading"}},
            'tiny at test answered with an error: "{\\"message\\": \\"loading\\"}"',
        ),
        (b" \n <!DocType html>", "is the base URL right?"),
        (b"[<html>]", "broken JSON (8 bytes)"),
    ],
)
def test_what_is_no_list_of_choices_is_told(answer, words):
    assert words in refused(answer)


def test_an_error_or_a_web_page_is_no_matter_where_there_is_a_choice():
    assert read({**answered(), "error": None}).text == "Hello"
    assert read(answered("<html>")).text == "<html>"


def test_an_empty_text_is_an_answer_only_with_its_probabilities():
    graded = replace(ASK, top_logprobs=1)
    some = {"content": [{"token": "", "logprob": -0.5, "top_logprobs": [{"token": "a", "logprob": -2}]}]}
    found = read(answered(" ", logprobs=some), graded)
    assert found.logprobs == (TokenLogprob("", -0.5, (("a", -2.0),)),)
    assert refused(answered(" ", logprobs=some)) == "tiny at test answered with an empty text (finish: stop)"


@pytest.mark.parametrize(
    ("logprobs", "request_"),
    [
        ({"content": "no list"}, ASK),
        *((given, replace(ASK, top_logprobs=1)) for given in (None, {"content": []}, {"content": {"a": 1}})),
    ],
)
def test_missing_probabilities_and_those_nobody_asked_for_are_none(logprobs, request_):
    assert read(answered(logprobs=logprobs), request_).logprobs == ()


@pytest.mark.parametrize("logprob", ["NaN", "high", None])
def test_a_probability_that_is_no_number_is_refused_even_where_they_are_optional(logprob):
    some = [{"token": "a", "logprob": logprob, "top_logprobs": []}]
    graded = replace(ASK, top_logprobs=1)
    assert "token probabilities of an unknown form" in refused(answered(logprobs={"content": some}), graded)


def test_what_json_cannot_hold_of_a_probability_is_a_very_small_one():
    assert wire.number(-math.inf) == -1e4
    assert wire.number("-Infinity") == -1e4
    assert wire.number(-0.25) == -0.25
    with pytest.raises(ValueError, match="nan"):
        wire.number(math.nan)


def test_json_is_taken_out_of_its_fence_only_where_it_was_asked_for():
    fenced = '```json\n{"a": 1}\n```'
    assert read(answered(fenced), replace(ASK, schema={"type": "object"})).text == '{"a": 1}'
    assert read(answered(fenced), ASK).text == fenced


def test_an_excerpt_is_short_on_one_line_and_without_secrets():
    assert WORDS.excerpt("a" * 160) == f'"{"a" * 160}"'
    assert WORDS.excerpt("a" * 161) == f'"{"a" * 160}..."'
    assert WORDS.excerpt("the sk-secret,\n\n two\tlines") == '"the [key], two lines"'
    assert WORDS.excerpt(b'\xff\x00 \xc3\xa9 "') == '"\ufffd\\\\u0000 \u00e9 \\""'
    assert str(wire.EndpointWords("x").failed("broke")) == "x broke"
    assert str(wire.EndpointWords("x").failed("broke", "why")) == 'x broke: "why"'


# --- the older endpoint, of bare text


def completed(text, logprobs=None, request=ASK):
    data = json.dumps({"choices": [{"text": text, "logprobs": logprobs, "finish_reason": "stop"}]}).encode()
    return completions.read(data, request, WORDS, "tiny")


def test_an_empty_completion_is_an_answer_only_with_its_probabilities():
    with pytest.raises(ModelFailed, match=r"answered with an empty text \(finish: stop\)"):
        completed(" ")
    some = {"tokens": [" "], "token_logprobs": [-0.5], "top_logprobs": [{"a": -2, " ": -0.5}]}
    found = completed(" ", some, replace(ASK, top_logprobs=2))
    assert found.logprobs == (TokenLogprob(" ", -0.5, ((" ", -0.5), ("a", -2.0))),), "likeliest first"
    assert (found.text, found.model) == (" ", "tiny")
    assert completed("yes", some).logprobs == ()


# --- refusals told from answers


@pytest.mark.parametrize(
    "text",
    [
        "As an AI language model, I don't have access to real-time order data.",
        "I’m sorry, but I can’t assist with that request.",
        "I apologize, but I am unable to help you with your order.",
        "My apologies, but I am not able to look that up.",
        "I can't help with that.",
        '"I am unable to answer this question."',
        "Unfortunately, I cannot access your order.",
        "I'm an AI assistant and do not place orders.",
        "I am just a large language model.",
        "I don't have access to the shop's database.",
        "I do not have personal experience with carriers.",
        "Well, as a language model I would say no.",
    ],
)
def test_a_refusal_is_told(text):
    assert looks_refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "You cannot return perishable items after 48 hours.",
        "What do I do when I cannot find my order number?",
        "I cannot find my tracking number. What should I do?",
        "We are sorry that your box arrived crushed. Take a photo within 48 hours.",
        "Sorry for the delay: parcels are held at customs until I receive the invoice.",
        "Customers who are unable to provide a receipt get store credit.",
        "The assistant cannot help with legal questions.",
        "I want to return an item that I cannot use.",
        "How can AI models help with peak-season forecasts?",
    ],
)
def test_an_answer_is_no_refusal(text):
    assert not looks_refused(text)


# --- what a grammar lets a model write


@given(st.text(max_size=40))
def test_a_literal_is_one_terminal_that_reads_as_the_text(text):
    written = literal(text)
    inside = written[1:-1]
    assert not re.search(r'(?<!\\)(?:\\\\)*"', inside)
    assert "\n" not in written
    read = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), inside, flags=re.S)
    assert read == text


def test_one_of_is_a_choice_of_the_texts():
    assert one_of(["yes", 'say "no"']) == r'root ::= "yes" | "say \"no\""'


def test_only_the_embedded_server_is_sent_a_grammar():
    asked = replace(ASK, grammar=one_of(["a"]))
    assert body(asked, embedded=True)["extra_body"]["grammar"] == 'root ::= "a"'
    assert "extra_body" not in body(asked)
    assert "grammar" not in body(embedded=True)["extra_body"]
