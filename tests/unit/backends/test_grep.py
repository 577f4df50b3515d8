"""Grep: its patterns, its matches (against a second way to find them), and its ranking (worked numbers)."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.grep import (
    LENGTH_WEIGHT,
    MAX_PATTERNS,
    WINDOW_BYTES,
    Kind,
    Pattern,
    SourceText,
    fold,
    matching_lines,
    patterns,
)
from core.backends.terms import analyzer
from core.domain.errors import Unavailable
from core.steps.grep import exact_texts

ENGLISH = analyzer("english")
LETTERS = st.text(alphabet="abAB12_ .-éß\n", max_size=40)


def kinds(question: str, language: str = "english") -> dict[str, Kind]:
    wanted = patterns(question, analyzer(language), exact_texts(question))
    return {one.text: one.kind for one in wanted}


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("the delayed parcels", {"delay": "beginning", "parcel": "beginning"}),
        ("tax of it", {"tax": "word"}),
        ('find "picking wave" now', {"picking wave": "exact", "find": "beginning", "now": "word"}),
        ("X9000", {"x9000": "exact", "9000": "word"}),
        (
            "getUserName()",
            {"getusername": "exact", "get": "beginning", "user": "beginning", "name": "beginning"},
        ),
        ("CUT-2", {"cut-2": "identifier", "cut": "beginning"}),
        ("CUT-26", {"cut-26": "exact", "cut": "beginning", "26": "word"}),
        ("退货流程", {"退货": "letters", "货流": "letters", "流程": "letters"}),
        ("", {}),
        ("?!", {}),
    ],
)
def test_a_question_becomes_patterns(question, wanted):
    assert kinds(question) == wanted


def test_patterns_are_bounded():
    assert len(patterns(" ".join(f"word{n}x" for n in range(500)), ENGLISH)) == MAX_PATTERNS


@given(
    st.lists(LETTERS, min_size=1, max_size=6), st.sampled_from(["a", "ab", "b1", "aab", "é", "1", "12", "ba"])
)
def test_words_and_beginnings_are_those_of_regular_expressions(texts, wanted):
    source = SourceText(texts)
    for kind in ("beginning", "word"):
        pattern = Pattern(wanted, kind)
        found = np.bincount(source.rows(source.find(pattern)), minlength=len(texts))
        for row, text in enumerate(texts):
            plain = re.sub(r"[\n]", " ", text)
            camel = {one.end() for one in re.finditer("[a-z](?=[A-Z])", plain)}
            starts = {0} | {
                at
                for at in range(1, len(plain))
                if not plain[at - 1].isalnum()
                or plain[at].isdigit() != plain[at - 1].isdigit()
                or at in camel
            }
            folded = "".join(char.casefold() for char in plain)
            if len(folded) != len(plain):
                continue  # ß gets longer; the others say enough
            expected = 0
            for at in starts:
                end = at + len(wanted)
                if plain[at : at + 1].isalnum() and folded.startswith(wanted, at):
                    rest = folded[end : end + 1]
                    border = not (rest.isalnum() or rest == "_") or end in starts
                    expected += kind == "beginning" or border
            assert found[row] == expected, (text, pattern)


def test_phrases_and_identifiers_match_as_written_between_borders():
    texts = ["see CUT-26.", "CUT-261", "xCUT-26", "the picking\nwave of 9", "picking waves", "a_CUT-26"]
    source = SourceText([*texts, "请问退货流程"])

    def rows(text: str, kind: Kind) -> list[int]:
        return source.rows(source.find(Pattern(text, kind))).tolist()

    assert rows("cut-26", "identifier") == [0]
    assert rows("picking wave", "exact") == [3]
    assert rows("ut-26", "exact") == []
    assert rows("货流", "letters") == [6]


def test_scores_are_those_worked_out_by_hand():
    far = "x" * WINDOW_BYTES
    texts = ["parcel delay", f"parcel {far} delay", "parcel parcel parcel", "nothing"]
    source = SourceText(texts)
    wanted = [Pattern("parcel", "word"), Pattern("delay", "word")]
    found, counts = source.rank(wanted, 10)
    assert counts == {wanted[0]: 3, wanted[1]: 2}
    parcel, delay = math.log1p(1.5 / 3.5), math.log1p(2.5 / 2.5)
    lengths = [len(text) + 1 for text in texts]
    norms = [1 - LENGTH_WEIGHT + LENGTH_WEIGHT * one / np.mean(lengths) for one in lengths]
    expected = {
        0: 2 * (parcel + delay) / norms[0],
        1: (parcel + delay) / norms[1],
        2: parcel * (2 - 1 / 3) / norms[2],
    }
    assert {one.row: one.score for one in found} == pytest.approx(expected)
    assert [one.row for one in found] == sorted(expected, key=lambda row: -expected[row])
    for one in found:
        assert sum(share for _, share in one.parts) == pytest.approx(one.score)
    assert dict(found[0].parts).keys() == {"parcel", "delay", "close together"}


@pytest.mark.parametrize(
    "term",
    [
        *("getUserById", "max_retry_count", "ABC-123", "v1.2.3", "E4012", "0x80070057", "ERR_CONN_RESET"),
        *("com.acme.OrderService", "std::vector", "--no-cache", "/api/v2/users", "#4711", "HTTP 503"),
        *("user@example.org", "orders.py", "ISO-27001", "__init__", '"late fee"', "`late fee`"),
    ],
)
@pytest.mark.parametrize("form", ["What does {} mean?", "Which order of the user fails with {}?"])
def test_a_passage_with_the_identifier_of_the_question_comes_first(term, form):
    question = form.format(term)
    wanted = patterns(question, ENGLISH, exact_texts(question))
    written = term.strip('"`')
    near = ["getUserByIdAsync", "max_retry_counts", "ABC-1234", "v1.2.30", "E40123", "HTTP 404", "late, fee"]
    others = [f"Which order of the user fails? What does it mean to fail with {one}, user?" for one in near]
    source = SourceText([*others, f"{'Seldom used. ' * 60}See {written}, which few know.", *others])
    assert source.rank(wanted, 3)[0][0].row == len(others)


@given(st.lists(st.text("abc ", max_size=60), min_size=1, max_size=30), st.integers(1, 5))
def test_the_best_k_are_those_of_a_full_ranking(texts, k):
    source = SourceText(texts)
    wanted = [Pattern(text, "beginning") for text in ("a", "bc", "cab", "b")] + [Pattern("ab c", "exact")]
    everything, _ = source.rank(wanted, len(texts))
    assert source.rank(wanted, k)[0] == everything[:k]
    assert everything == sorted(everything, key=lambda one: (-one.score, one.row))
    matching = {int(row) for one in wanted for row in source.rows(source.find(one))}
    assert {one.row for one in everything} == matching


def test_only_allowed_rows_are_found_and_nothing_in_nothing():
    source, wanted = SourceText(["parcel", "parcel parcel", "parcel"]), [Pattern("parcel", "word")]
    found, _ = source.rank(wanted, 10, np.array([True, False, True]))
    assert [one.row for one in found] == [0, 2]
    assert source.rank([], 5) == ([], {})
    assert SourceText([]).rank(wanted, 5) == ([], {wanted[0]: 0})


def test_lines_that_match_are_numbered():
    texts = ["one\nparcel two\nthree\nParcels", "none", ""]
    assert matching_lines(texts, [Pattern("parcel", "beginning")]) == [(2, 4), (), ()]


def test_a_text_too_large_to_read_for_every_question_is_refused(monkeypatch):
    monkeypatch.setattr("core.backends.grep.MAX_TEXT_BYTES", 10)
    with pytest.raises(Unavailable):
        SourceText(["0123456789"])


@given(st.text(max_size=200))
def test_any_question_and_any_text_are_taken(text):
    source = SourceText([text, text[::-1]])
    source.rank(patterns(text, ENGLISH, exact_texts(text)), 2)
    assert fold(fold(text)) == fold(text)
