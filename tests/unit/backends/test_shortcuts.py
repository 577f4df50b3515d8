"""What numpy and larger pieces do in less time gives the very values of the plain way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.backends.late import MatchMatrix
from core.backends.rerankers.blend import weighted_maxsim
from core.domain.ranked import Ids
from core.domain.types import Hit, Origin, Passage, TracedTuple
from core.steps.late_interaction import COLUMNS, ROWS, matched
from core.steps.memo import digest

COSINES = st.floats(-1, 1, width=32)
IDS = st.text(max_size=3)
SCORES = st.floats(allow_nan=False)


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=COSINES))
def test_the_cosines_of_a_match_are_rounded_as_python_rounds(cosines: np.ndarray) -> None:
    rows, columns = cosines.shape
    match = MatchMatrix(tuple(map(str, range(rows))), tuple(map(str, range(columns))), cosines)
    found = matched("a", match, whole=True)
    best = cosines.argmax(axis=1)
    assert [(token, repr(cosine)) for token, cosine in found.best] == [
        (str(column), repr(round(float(cosines[row, column]), 4))) for row, column in enumerate(best)
    ]
    drawn = [[round(float(cell), 2) for cell in row[:COLUMNS]] for row in cosines[:ROWS]]
    assert repr([list(row) for row in found.cosines]) == repr(drawn)


@given(st.lists(st.integers(0, 6), max_size=6), st.integers(0, 4))
def test_stored_vectors_weigh_what_widened_ones_do(lengths: list[int], tokens: int) -> None:
    rng = np.random.default_rng(len(lengths))
    query = rng.standard_normal((tokens, 8)).astype(np.float32)
    halves = [rng.standard_normal((length, 8)).astype(np.float16) for length in lengths]
    wide = [one.astype(np.float32) for one in halves]
    weights = np.full(tokens, 1 / max(1, tokens))
    expected = weighted_maxsim(query, weights, wide).tolist()
    assert weighted_maxsim(query, weights, halves).tolist() == expected
    mixed = [one if at % 2 else other for at, (one, other) in enumerate(zip(halves, wide, strict=True))]
    assert weighted_maxsim(query, weights, mixed).tolist() == expected


@given(st.lists(st.lists(st.tuples(IDS, SCORES))))
def test_rankings_in_little_memory_give_what_was_put_in(rankings: list[list[tuple[str, float]]]) -> None:
    ids = Ids()
    packed = [ids.ranked(iter(one)) for one in rankings]
    assert [list(one) for one in packed] == rankings
    assert len(ids.known) == len(set(ids.known)) == len({id for one in rankings for id, _ in one})


def hit(id: str, score: float, text: str) -> Hit:
    return Hit(Passage(id, "doc", "title", text), score)


HITS = st.lists(st.builds(hit, IDS, SCORES | st.integers(-3, 3), IDS), max_size=4).map(tuple)


@given(HITS, HITS)
def test_rankings_have_one_digest_where_they_say_the_same(
    one: tuple[Hit, ...], other: tuple[Hit, ...]
) -> None:
    def said(hits: tuple[Hit, ...]) -> str:
        return repr([(one.passage.id, one.passage.title, one.passage.text, one.score) for one in hits])

    assert (digest(["step", {"hits": one}]) == digest(["step", {"hits": other}])) == (
        said(one) == said(other)
    )
    traced = TracedTuple(one, Origin(3, 0, len(one)))
    assert digest([traced]) == digest([one]) == digest([TracedTuple(traced, Origin(4, 0, len(one)))])
    assert digest([traced[1:]]) == digest([one[1:]])  # a part is not taken for the whole
    assert (digest([(one, other)]) == digest([(other, one)])) == (said(one) == said(other))
