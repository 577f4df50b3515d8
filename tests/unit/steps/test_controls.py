"""A cut at the largest drop, and noise: by definitions written out, and in routes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analysis.remarks import remarks
from core.steps.select import largest_drop
from tests.asking import ask, ids

TEXTS = {f"p{at:02}:0-9": f"parcel {'customs ' * (at < 3)}number {at}" for at in range(30)}


def asked(tmp_path, route, text="customs parcel", texts=TEXTS, **parameters):
    result, _ = ask(tmp_path, route, text, options={"texts": texts}, **parameters)
    assert (result.status, result.error) == ("ok", None)
    return result


def test_the_drop_by_hand():
    assert largest_drop([0.9, 0.88, 0.5, 0.49, 0.48]) == 2
    assert largest_drop([0.9, 0.1]) == 1
    assert largest_drop([0.5, 0.5, 0.5]) == 0
    assert largest_drop([0.5]) == largest_drop([]) == 0
    assert largest_drop([0.9, *[0.8] * 8, 0.0]) == 1, "the last tenth is not looked at"


@given(st.lists(st.integers(0, 20), min_size=2, max_size=30).map(lambda some: sorted(some, reverse=True)))
def test_no_drop_before_it_is_as_large_and_none_behind_it_larger(scores):
    at = largest_drop([float(one) for one in scores])
    looked = scores[: max(2, int(len(scores) * 0.9))]
    drops = [a - b for a, b in pairwise(looked)]
    if at:
        assert all(drop < drops[at - 1] for drop in drops[: at - 1])
        assert all(drop <= drops[at - 1] for drop in drops)
    else:
        assert not any(drops)


def test_a_list_ends_behind_its_largest_drop(tmp_path):
    whole = asked(tmp_path, "dense")
    result = asked(tmp_path, "adaptive_k", least=1, beyond=0, pool=30)
    told = result.spans[-1].output
    assert ids(result) == ids(whole)[: told.kept]
    assert told.kept == told.drop
    assert told.size == pytest.approx(whole.hits[told.drop - 1].score - whole.hits[told.drop].score)
    assert len(asked(tmp_path, "adaptive_k", least=1, beyond=4, pool=30).hits) == told.kept + 4


def test_a_first_hit_far_above_the_others_does_not_stand_alone(tmp_path):
    texts = {"same:0-9": "customs parcel", **{f"p{at}:0-9": f"glass {at}" for at in range(9)}}
    result = asked(tmp_path, "adaptive_k", texts=texts, least=3, beyond=0)
    assert result.spans[-1].output.drop == 1
    assert result.spans[-1].output.guarded
    assert len(result.hits) == 3
    (said,) = remarks(result, "tiny")
    assert said.startswith("The list ends after 3 passages, the least that is kept")


def test_noise_adds_what_no_search_found_and_nothing_else(tmp_path):
    texts = {**{f"p{at:02}:0-9": f"parcel number {at}" for at in range(150)}}
    plain = ids(asked(tmp_path, "hybrid_auto", "parcel number 7", texts))
    result, again, other = (
        asked(tmp_path, "noise", "parcel number 7", texts, count=4, top=5, seed=seed) for seed in (1, 1, 2)
    )
    drawn, found = result.spans[-1].output.ids, ids(result)
    assert len(set(drawn)) == 4
    assert not set(drawn) & set(plain)
    assert [id for id in found if id not in drawn] == plain
    assert max(map(found.index, drawn)) < 5 + 4
    ranks = ", ".join(str(at) for at, id in enumerate(found, 1) if id in drawn)
    assert remarks(result, "tiny") == [f"Unrelated passages, drawn at random: ranks {ranks}"]
    assert ids(again) == found != ids(other)
    result = asked(tmp_path, "noise", "parcel", {"a:0-9": "parcel", "b:0-9": "parcel post"})
    assert result.spans[-1].output.ids == ()
    assert "0 of 2 passages" in result.spans[-1].attributes["note"]
