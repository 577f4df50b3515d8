"""Overlap of rankings: against the paper's numbers, its own laws, and by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.rank_overlap import Overlap, alone, jaccard, overlap, rbo, similarity_order
from core.domain.types import Hit, Passage, Query, RouteResult, Run
from tests.runs import make_run
from ui.app.routes import title
from ui.compare.overlap import triangle

RANKINGS = st.lists(st.sampled_from("abcdefghijklmnop"), max_size=12, unique=True)
PS = st.floats(0.05, 0.99)


def truncated(one, other, p, depth):
    """Equation 6 summed up to `depth` over the agreement of each depth, as it is written."""
    return (1 - p) * sum(p ** (d - 1) * len({*one[:d]} & {*other[:d]}) / d for d in range(1, depth + 1))


def test_worked_examples_of_the_paper():
    """Figure 2: agreement 0, 0, 2/3, 1/2, 2/5, 1/3, 2/7 of these two at depths 1 to 7."""
    one, other, p = "abcdefg", "zcavwxy", 0.9
    agreement = [0, 0, 2 / 3, 1 / 2, 2 / 5, 1 / 3, 2 / 7]
    by_hand = (1 - p) * sum(p**d * a for d, a in enumerate(agreement)) + 2 / 7 * p**7
    assert rbo(one, other, p) == pytest.approx(by_hand, abs=1e-12)
    p = 0.5
    first = 0 + 1 / 2 * p**2 + 1 / 3 * p**3 + 2 / 4 * p**4
    second = 1 * 1 / (2 * 3) * p**3 + 1 * 2 / (2 * 4) * p**4
    expected = (1 - p) / p * (first + second) + ((2 - 1) / 4 + 1 / 2) * p**4
    assert rbo("ab", "cadb", p) == pytest.approx(expected, abs=1e-12)
    assert rbo("cadb", "ab", p) == pytest.approx(expected, abs=1e-12)


@given(RANKINGS, RANKINGS, PS)
def test_it_lies_between_its_bounds_and_does_not_mind_the_order(one, other, p):
    value = rbo(one, other, p)
    assert value == pytest.approx(rbo(other, one, p))
    assert -1e-12 <= value <= 1 + 1e-12
    size = min(len(one), len(other))
    assert value >= truncated(one, other, p, size) - 1e-12
    if not {*one} & {*other}:
        assert value == 0
    if size:  # equation 23 for lists of one length
        one, other = one[:size], other[:size]
        agreed = len({*one} & {*other}) / size
        assert rbo(one, other, p) == pytest.approx(agreed * p**size + truncated(one, other, p, size))


@given(RANKINGS.filter(lambda r: len(r) > 3), PS)
def test_a_ranking_is_like_itself_and_its_beginning_and_a_swap_costs_more_the_higher_it_stands(ranking, p):
    assert rbo(ranking, ranking, p) == pytest.approx(1)
    assert rbo(ranking, ranking[: max(1, len(ranking) // 2)], p) == pytest.approx(1)
    top = [ranking[1], ranking[0], *ranking[2:]]
    bottom = [*ranking[:-2], ranking[-1], ranking[-2]]
    assert rbo(ranking, top, p) <= rbo(ranking, bottom, p) + 1e-12


def test_wrong_arguments_are_named_and_jaccard_counts_at_a_depth():
    with pytest.raises(ValueError, match="p=1"):
        rbo("ab", "ab", 1)
    with pytest.raises(ValueError, match="twice"):
        rbo("aa", "ab", 0.9)
    assert rbo("", "ab", 0.9) == rbo("", "", 0.9) == 0
    assert jaccard("abcd", "bxay", 2) == pytest.approx(1 / 3)
    assert jaccard("abcd", "bxay", 4) == pytest.approx(2 / 6)
    assert jaccard("", "", 5) == 0


# Runs.


def small(**rankings):
    passages = {id: Passage(id, id, id, id) for ids in rankings.values() for id in ids}
    results = tuple(
        RouteResult(name, name, "ok", 1.0, hits=tuple(Hit(passages[id], 1.0) for id in ids))
        for name, ids in rankings.items()
    )
    return Run("r", "", Query("q"), "c", "f", {}, results, passages)


def test_like_routes_stand_side_by_side():
    found = overlap(small(w="abcd", x="mnop", y="abce", z="mnoq"), "jaccard", depth=4)
    order = "".join(found.routes)
    assert "wy" in order or "yw" in order
    assert "xz" in order or "zx" in order
    assert found.pairs()[0][2] == pytest.approx(3 / 5)
    assert found.pairs()[-1][2] == 0
    assert len(found.pairs()) == 6
    for a, one in enumerate(found.routes):
        for b, other in enumerate(found.routes):
            lists = {"w": "abcd", "x": "mnop", "y": "abce", "z": "mnoq"}
            assert found.values[a, b] == pytest.approx(jaccard(lists[one], lists[other], 4))


def test_routes_without_hits_are_left_out_and_what_only_one_finds_is_named():
    found = overlap(small(x="ab", y="", z="ab"), "rbo")
    assert found.routes == ("x", "z")
    assert found.empty == ("y",)
    assert found.values == pytest.approx(np.ones((2, 2)))
    nothing = overlap(small(y=""), "rbo")
    assert nothing.routes == ()
    assert nothing.pairs() == []
    assert alone(small(x="abcd", y="badc", z="abxc"), 3) == {"x": ["c"], "y": ["d"], "z": ["x"]}


@given(st.integers(0, 9), st.randoms())
def test_the_order_is_a_permutation(size, random):
    values = np.eye(size)
    for a in range(size):
        for b in range(a):
            values[a, b] = values[b, a] = random.random()
    assert sorted(similarity_order(values)) == list(range(size))


def test_the_table_holds_the_lower_triangle():
    found = overlap(make_run(mishaps=False), "rbo")
    html = triangle(found, "a <finding>")
    rows = re.findall(r"<tr>(.*?)</tr>", html)[1:]
    cells = [re.findall(r'--alike:(\d+)%" title="[^"]*: ([0-9.]+)">([0-9.]+)</td>', row) for row in rows]
    assert [len(row) for row in cells] == list(range(1, len(found.routes)))
    for at, row in enumerate(cells, 1):
        for other, (share, exact, shown) in enumerate(row):
            value = found.values[at, other]
            assert int(share) == round(100 * value)
            assert (exact, shown) == (f"{value:.3f}", f"{value:.2f}")
    assert 'aria-label="a &lt;finding&gt;"' in html
    assert f'title="{title(found.routes[1])} – {title(found.routes[0])}: ' in rows[0]
    big = replace(found, routes=tuple(map(str, range(25))), values=np.full((25, 25), 0.5))
    assert ">.50</td>" in triangle(big, "")
    assert ">0.50" not in triangle(big, "")
    assert triangle(overlap(replace(make_run(), results=()), "rbo"), "") == ""


def test_hostile_route_names_bring_no_markup_into_the_table():
    html = triangle(Overlap(("<img src=x>", '"><script>'), np.ones((2, 2))), "<svg>")
    assert not any(mark in html for mark in ("<img", "<script", "<svg"))
