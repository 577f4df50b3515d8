"""Markers, sentences and abstentions of answers, whatever was written."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.prompting.citations import NOT_ANSWERED, abstains, markers, resolve, sentences, unmarked

HOSTILE = st.one_of(
    st.text(max_size=120),
    st.text(st.sampled_from("[]()0123456789,; .!?…\"'\n-*• aBé٣²_<>|"), max_size=120),
)


@given(HOSTILE, st.lists(st.text(max_size=5), unique=True, max_size=12))
def test_whatever_was_written_citations_are_of_passages_shown(text, ids):
    draft = resolve(text, ids)
    assert set(draft.citations) <= set(ids)
    assert len(draft.citations) == len(set(draft.citations))
    assert all(number < 1 or number > len(ids) for number in draft.wrong)
    assert len(draft.citations) + len(draft.wrong) == (0 if draft.abstained else len(markers(draft.text)))
    assert set(draft.uncited) <= set(sentences(text.strip()))


@given(HOSTILE)
def test_sentences_lose_no_word_and_change_no_order(text):
    assert re.findall(r"\w+", " ".join(sentences(text))) == re.findall(r"\w+", text)


@given(HOSTILE)
def test_taking_the_markers_out_loses_no_word(text):
    words = re.findall(r"[^\W\d]+", text)
    assert re.findall(r"[^\W\d]+", unmarked(text)) == words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[1][3, 2] and [ 1 ; 4 ].", (1, 3, 2, 4)),
        ("array[0], [12345], [a], [1-3], (2)", (0,)),
        ("none", ()),
    ],
)
def test_markers_by_hand(text, found):
    assert markers(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One [1]. Two. [2] Three!", ("One [1].", "Two. [2]", "Three!")),
        ("It costs 3.5 kg. Dr. No said so.", ("It costs 3.5 kg.", "Dr. No said so.")),
        ("- first\n* second\n\n...\n", ("first", "second")),
        ("He asked “why?” So (it ended.) Then… So", ("He asked “why?”", "So (it ended.)", "Then…", "So")),
        ('It is (hex of `t` + "." + body). [1] So.', ('It is (hex of `t` + "." + body). [1]', "So.")),
        ("One. [1], [2] and [3] Two. [1][2], [4]. So", ("One. [1], [2] and [3]", "Two. [1][2], [4].", "So")),
        ("It holds. [2] | a | b | [3]", ("It holds. [2]", "| a | b | [3]")),
        ("It is. [1] + 2", ("It is. [1] + 2",)),
        ("Call `a. B` first. Then `c`.", ("Call `a. B` first.", "Then `c`.")),
        ("It took 5` more. It ended.", ("It took 5` more.", "It ended.")),
        ("", ()),
    ],
)
def test_sentences_by_hand(text, found):
    assert sentences(text) == found


@pytest.mark.parametrize(
    ("text", "gave_up"),
    [
        (NOT_ANSWERED, True),
        ("The provided passages do not mention a mayor.", True),
        ("None of the passages contain it.", False),  # not how the model is told to say it
        ("The passages do not state the year, but it was built by hand [2].", False),
        ("They are stored; the passages do not say where.", False),
    ],
)
def test_only_a_text_that_begins_so_and_cites_nothing_abstains(text, gave_up):
    assert abstains(text) == gave_up
    assert resolve(text, ["a", "b"]).abstained == gave_up


@pytest.mark.parametrize(
    "text", ["." * 50_000 + "x", "Mr. " * 12_000, "[1," * 20_000, "a." + "[1]" * 15_000 + "x", 'a."' * 20_000]
)
def test_long_text_takes_no_time_with_its_square(text):
    began = time.process_time()
    resolve(text, ["a"])
    assert time.process_time() - began < 5
