"""Keys are found in what comes from elsewhere: whole, in parts, coded; and nothing else is."""

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import Completion, TokenLogprob
from core.backends.llm.wire import Words, without_secrets
from core.domain.redact import MARK, PART, redacted, spans

KEY = "sk-Proj_4f9a/7c2e+1b8d=XyZ"
EVERY = "".join(f"%{ord(char):02x}" for char in KEY)
FORMS = {
    "whole": KEY,
    "URL-encoded": quote(KEY, safe=""),
    "every character URL-encoded": EVERY,
    "URL-encoded in capitals": EVERY.upper(),
    "URL-encoded twice": quote(quote(KEY, safe=""), safe=""),
    "JSON": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "JSON escapes": "".join(f"\\u{ord(char):04x}" for char in KEY),
    "escaped for Markdown": KEY.replace("_", "\\_").replace("-", "\\-").replace("+", "\\+"),
    "its first part": KEY[:PART],
    "its last part": KEY[-PART:],
    "a part of its middle": KEY[5 : 5 + PART],
    "coded in part": quote(KEY[:14], safe=""),
}


@pytest.mark.trust
@pytest.mark.parametrize("form", FORMS)
def test_a_key_in_any_form_is_a_mark(form):
    text = f"before ({FORMS[form]}) after 100% \\n"
    assert redacted(text, [KEY]) == f"before ({MARK}) after 100% \\n"


def test_what_is_no_part_of_a_key_stays():
    for text in ("", "sk-Proj", "short 7c2e+1b", "100%41%zz \\u12 \\", KEY[::-1], KEY.swapcase()):
        assert redacted(text, [KEY]) == text
    assert (
        redacted("any required text", ["", "short", "sk-no-key-required", "lm-studio"]) == "any required text"
    )


def test_parts_that_follow_each_other_are_one_mark_and_others_are_their_own():
    assert redacted(KEY + KEY[:9] + " " + KEY[:8], [KEY]) == f"{MARK} {MARK}"
    assert redacted(f"{KEY} and other-key-123", [KEY, "other-key-123"]) == f"{MARK} and {MARK}"


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 18), st.integers(PART, 26))
def test_no_part_is_left_in_any_text(before, after, start, length):
    text = redacted(before + KEY[start : start + length] + after, [KEY])
    assert not [at for at in range(len(KEY) - PART + 1) if KEY[at : at + PART] in text]


@given(st.text(alphabet="%4f9a/7c2e+1b8d\\u0", max_size=60))
def test_any_text_can_be_looked_through(text):
    found = spans(text, [KEY])
    assert found == sorted(found)
    assert all(0 <= start < end <= len(text) for start, end in found)


@pytest.mark.slow
def test_a_long_text_is_looked_through_quickly():
    began = time.perf_counter()
    redacted("50% of it, \\n and so on " * 40_000 + KEY, [KEY])
    assert time.perf_counter() - began < 20  # a million characters; a second on a quiet machine


def test_tokens_that_spell_a_key_are_marks():
    tokens = ("It", " is ", "sk-Pr", "oj_4f", "9a/7c", " and", " more")
    given_ = tuple(TokenLogprob(one, -1.0, ((one, -1.0), ("other", -2.0))) for one in tokens)
    made = Completion("".join(tokens), "m-" + KEY, KEY, 1.0, 1, 1, logprobs=given_, created="now")
    clean = without_secrets(made, Words("m", (KEY,)))
    assert clean.text == f"It is {MARK} and more"
    assert [one.token for one in clean.logprobs] == ["It", " is ", MARK, MARK, MARK, " and", " more"]
    assert [len(one.top) for one in clean.logprobs] == [2, 2, 0, 0, 0, 2, 2]
    assert (clean.model, clean.finish) == (f"m-{MARK}", MARK)
    other = without_secrets(made, Words("m", ("another-key-0",)))
    assert other == made
