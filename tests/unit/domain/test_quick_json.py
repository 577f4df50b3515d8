"""JSON in less time reads back as what the standard library writes."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.domain import jsonl

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def same(a, b):
    """Equal with equal types, and to the sign of zero."""
    return repr(a) == repr(b)


NUMBERS = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e16, 1e-5, 2**70, True]


@given(PLAIN)
@example(NUMBERS)
@example(["\ud800", "é\u2028", '\x00\x1f\x7f"\\', "a\nb\r\t"])
def test_it_reads_back_as_it_was(value):
    for write in (jsonl.text, jsonl.ascii_text):
        assert same(json.loads(write(value)), value)
    assert jsonl.ascii_text(value).isascii()
    assert len(jsonl.ascii_text(value).splitlines()) <= 1
    with pytest.raises(TypeError):
        jsonl.text([object()])


@given(st.lists(st.tuples(st.text(), st.floats())))
def test_it_reads_back_as_what_json_writes(hits):
    expected = json.loads(json.dumps(hits))
    assert same(json.loads(jsonl.text(hits)), expected)
