"""Keys are found in what comes from elsewhere: whole, in parts, coded; and nothing else is."""

import json
import re
import time
import tracemalloc
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.base import Completion, TokenLogprob
from core.backends.llm.wire import EndpointWords, without_secrets
from core.domain import redact
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
    text = "any required text"
    assert redacted(text, ["", "short", "sk-no-key-required", "lm-studio"]) == text
    assert redacted(KEY + KEY[:9] + " " + KEY[:8], [KEY]) == f"{MARK} {MARK}", "parts in a row are one mark"
    assert redacted(f"{KEY} and other-key-123", [KEY, "other-key-123"]) == f"{MARK} and {MARK}"


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 18), st.integers(PART, 26))
def test_no_part_is_left_in_any_text(before, after, start, length):
    text = redacted(before + KEY[start : start + length] + after, [KEY])
    assert not [at for at in range(len(KEY) - PART + 1) if KEY[at : at + PART] in text]


CODED = re.compile(r"%(?:25){0,8}([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)


def plainly(text):
    """Redact character by character: what `redacted` must equal."""
    shown = []
    starts = []
    at = 0
    while at < len(text):
        match = CODED.match(text, at)
        hex = match and (match[1] or match[2])
        shown.append(text[at] if match is None else chr(int(hex, 16)) if hex else match[3])
        starts.append(at)
        at = at + 1 if match is None else match.end()
    hidden = [False] * len(text)
    for plain, places in ((text, range(len(text) + 1)), ("".join(shown), [*starts, len(text)])):
        for at in range(len(plain) - PART + 1):
            if plain[at : at + PART] in KEY:
                start, end = places[at], places[at + PART]
                hidden[start:end] = [True] * (end - start)
    return re.sub("\0+", MARK, "".join("\0" if one else char for one, char in zip(hidden, text, strict=True)))


PIECES = [*FORMS.values(), *"\\% xé\ud800\U0001f511", "%25", "%2", "u0041", "\\u00", "25", "4f"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.integers(8, 40))
def test_a_text_is_redacted_as_character_by_character(text, stride):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redact, "STRIDE", stride)
        assert redacted(text, [KEY]) == plainly(text)
        found = list(spans(text, [KEY]))
    assert found == sorted(found)
    assert all(0 <= start < end <= len(text) for start, end in found)


LONG = {
    "a reply": json.dumps({"text": "50% of it, and so on\n" * 40}) + KEY,
    "all coded": "%41\\u0041\\a",
    "the key, coded": EVERY,
    "the key, apart": KEY + " ",
}


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.parametrize("kind", LONG)
def test_16_million_characters_take_a_second_and_100_megabytes(kind):
    text = LONG[kind] * ((16 << 20) // len(LONG[kind]))
    redacted("50%", [KEY])  # imports numpy
    began = time.process_time()
    redacted(text, [KEY])
    assert time.process_time() - began < 3  # 0.35 to 0.73 s on a quiet machine
    tracemalloc.start()
    try:
        redacted(text[: len(text) // 4], [KEY])
        assert tracemalloc.get_traced_memory()[1] < 25e6
    finally:
        tracemalloc.stop()


def test_tokens_that_spell_a_key_are_dropped():
    tokens = ("It", " is ", "sk-Pr", "oj_4f", "9a/7c", " and", " more")
    given_ = tuple(TokenLogprob(one, -1.0, ((one, -1.0), ("other", -2.0))) for one in tokens)
    made = Completion("".join(tokens), "m-" + KEY, KEY, 1.0, 1, 1, logprobs=given_, created="now")
    clean = without_secrets(made, EndpointWords("m", (KEY,)))
    assert clean.text == f"It is {MARK} and more"
    assert (clean.model, clean.finish, clean.logprobs) == (f"m-{MARK}", MARK, ())
    other = without_secrets(made, EndpointWords("m", ("another-key-0",)))
    assert other == made
