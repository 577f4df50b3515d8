"""Coverage against sets of characters and tokens taken one by one, and by its properties."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus.types import Document
from core.domain.errors import BadInput
from core.domain.types import Passage
from core.evaluation.chunkings.coverage import (
    BUDGET,
    BUDGETS,
    Range,
    Tokens,
    gains,
    measures,
    passage_by_passage,
    reachable,
)

RANGES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 30)).map(
        lambda one: (one[0], one[1], one[1] + one[2])
    ),
    max_size=8,
)


class Shelf:
    """One document a name."""

    name = "shelf"

    def __init__(self, **texts: str) -> None:
        self.texts = texts

    def by_ids(self, ids):
        return {}

    def document(self, id):
        if id not in self.texts:
            raise BadInput(f"no document {id}")
        return Document(id, "", self.texts[id]), []


def oracle(labelled: list[Range], ranking: list[Range], budget: int) -> float:
    """Token by token, with sets."""
    wanted = {(doc, token) for doc, first, last in labelled for token in range(first, last)}
    read: list[tuple[str, int]] = []
    for doc, first, last in ranking:
        for token in range(first, last):
            if len(read) == budget:
                break
            read.append((doc, token))
    return len(wanted & set(read)) / len(wanted)


@given(RANGES, RANGES, st.sampled_from(BUDGETS))
def test_it_is_what_sets_say(labelled: list[Range], ranking: list[Range], budget: int) -> None:
    found = measures(labelled, ranking)
    if not any(last > first for _, first, last in labelled):
        assert found is None
        return
    assert found is not None
    assert found[f"coverage@{budget}"] == pytest.approx(oracle(labelled, ranking, budget))
    mean = sum(oracle(labelled, ranking, n) for n in range(1, 241)) / BUDGET
    rest = oracle(labelled, ranking, 240) * (BUDGET - 240) / BUDGET  # 8 passages of at most 30 tokens
    assert found["area"] == pytest.approx(mean + rest)


@given(RANGES, RANGES, st.integers(1, 200))
def test_it_grows_with_the_budget_and_stays_a_share(
    labelled: list[Range], ranking: list[Range], budget: int
) -> None:
    read = gains(labelled, ranking)
    less, more = read[:budget].sum(), read[: budget + 1].sum()
    total = len({(doc, token) for doc, first, last in labelled for token in range(first, last)})
    assert 0 <= less <= more <= total
    found = measures(labelled, ranking)
    if found is not None:
        values = [found[f"coverage@{n}"] for n in BUDGETS]
        assert values == sorted(values)
        assert all(0 <= found[name] <= 1 for name in ("area", "density", "documents"))
        assert found[f"coverage@{max(BUDGETS)}"] <= 1 + 1e-12


@given(RANGES, RANGES, st.data())
def test_a_passage_cut_in_two_that_follow_each_other_changes_nothing(
    labelled: list[Range], ranking: list[Range], data: st.DataObject
) -> None:
    cut: list[Range] = []
    for doc, first, last in ranking:
        at = data.draw(st.integers(first, last))
        cut += [(doc, first, at), (doc, at, last)]
    assert gains(labelled, ranking).tolist() == gains(labelled, cut).tolist()
    one, two = measures(labelled, ranking), measures(labelled, cut)
    names = [*(f"coverage@{n}" for n in BUDGETS), "area", "density"]
    assert one is two is None or [one[n] for n in names] == [two[n] for n in names]


def test_measures_by_hand():
    labelled = [("a", 0, 10), ("a", 5, 10)]  # counted once
    found = measures(labelled, [("a", 0, 5), ("a", 0, 5), ("a", 0, 10)])
    assert found is not None
    assert (found["coverage@250"], found["density"]) == (1.0, 10 / 20)
    assert (
        gains(labelled, [("a", 0, 5), ("a", 0, 5), ("a", 0, 10)]).tolist()
        == [True] * 5 + [False] * 10 + [True] * 5
    )
    labelled, ranking = [("a", 900, 1100)], [("b", 0, 900), ("a", 900, 1300)]
    found = measures(labelled, ranking)
    assert found is not None
    assert (found["coverage@1000"], found["coverage@2000"]) == (0.5, 1.0)
    assert (found["passages"], found["tokens a passage"], found["documents"]) == (2.0, 650.0, 1.0)
    assert passage_by_passage(labelled, ranking) == [(900, 0.0), (100, 0.5)]
    assert reachable([("a", 0, 4000)]) == 0.25
    assert reachable([("a", 0, 10), ("a", 0, 10)]) == 1.0


@given(st.text(alphabet="ab .,é\n’_1", max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_tokens_are_words_and_marks_where_they_begin(text: str, start: int, end: int) -> None:
    starts = [m.start() for m in re.finditer(r"\w+|[^\w\s]", text)]
    _, first, last = Tokens(Shelf(a=text)).range("a", start, end)
    assert starts[first:last] == [at for at in starts if start <= at < end]


@given(st.lists(st.integers(0, 59), max_size=5))
def test_passages_side_by_side_have_the_tokens_of_their_document(cuts: list[int]) -> None:
    text = "One, two; three-four (five) six’s seven. " * 2
    tokens = Tokens(Shelf(a=text))
    edges = sorted({0, *cuts, len(text)})
    parts = [tokens.of(Passage(f"a:{a}-{b}", "a", "", text[a:b], a, b)) for a, b in pairwise(edges)]
    assert np.concatenate([np.arange(first, last) for _, first, last in parts]).tolist() == list(
        range(*tokens.range("a", 0, len(text))[1:])
    )
