"""JSON in less time reads back as what the standard library writes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain import jsonl

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal with equal types, and to the sign of zero."""
    return repr(a) == repr(b)


@given(PLAIN)
def test_it_reads_back_as_it_was(value: Any) -> None:
    assert same(json.loads(jsonl.text(value)), value)
    assert same(json.loads(jsonl.ascii_text(value)), value)
    assert jsonl.ascii_text(value).isascii()


@given(st.lists(st.tuples(st.text(), st.floats())))
def test_it_reads_back_as_what_json_writes(hits: list[tuple[str, float]]) -> None:
    expected = json.loads(json.dumps(hits))
    assert same(json.loads(jsonl.text(hits)), expected)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e16, 1e-5, 2**70, True])
def test_numbers_that_json_has_no_word_for_are_kept(number: float) -> None:
    assert same(json.loads(jsonl.text([number])), [number])


@pytest.mark.parametrize("text", ["\ud800", "é\u2028", '\x00\x1f\x7f"\\', "a\nb\r\t"])
def test_any_text_is_kept(text: str) -> None:
    assert json.loads(jsonl.text({text: text})) == {text: text}
    line = jsonl.ascii_text({text: text})
    assert json.loads(line) == {text: text}
    assert len(line.splitlines()) == 1


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        jsonl.text([object()])
