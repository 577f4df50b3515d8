"""The table of families: what it is derived from, and that the routes' data say the same."""

import pytest

from bench.families import METRIC, rank, ranked, recommended, table
from core.routes import families
from core.routes.registry import ours

ALIKE = 0.8  # rank-biased overlap from which two default routes would show the same


def test_what_the_program_recommends_is_what_the_table_gives():
    found = families.measured()
    rows = {
        name: {key: row[key] for key in ("family", "better", "worse", METRIC)}
        for name, row in found["routes"].items()
    }
    assert ranked(rows) == found["routes"]
    assert recommended(found["routes"]) == found["recommended"]
    for name, row in rows.items():
        assert ours()[name].family == row["family"]
        assert {*row["better"], *row["worse"]} <= row[METRIC].keys() <= found["sets"].keys()


def test_the_default_routes_are_nine_that_differ():
    assert sum(route.first for route in ours().values()) == 9
    pairs = families.measured()["overlap"]
    defaults = {route.name for route in ours().values() if route.first and not route.asks()}
    assert {name for pair in pairs for name in pair.split()} >= defaults
    assert max(pairs.values()) < ALIKE


def test_a_set_favours_a_route_only_if_the_difference_is_shown():
    many = {str(at): 0.5 for at in range(40)}
    up = dict.fromkeys(many, 0.9)
    some = {id: 0.9 if id == "0" else 0.5 for id in many}
    sets = {
        "one": {"hybrid_auto": many, "rerank": up, "mmr": some},
        "two": {"hybrid_auto": up, "rerank": up, "mmr": many, "dedupe": many},
    }
    rows = table(sets)
    assert (rows["rerank"]["better"], rows["rerank"]["worse"]) == (["one"], [])
    assert (rows["mmr"]["better"], rows["mmr"]["worse"]) == ([], ["two"])
    assert [rows[name]["mean_rank"] for name in ("rerank", "mmr", "dedupe")] == [1, 2.25, 2.5]
    assert recommended(rows) == {"hybrid": "hybrid_auto", "scoring": "rerank"}


@pytest.mark.parametrize(("value", "expected"), [(0.9, 1), (0.5, 2.5), (0.1, 4)])
def test_equal_values_share_their_ranks(value, expected):
    assert rank(value, [0.5, 0.9, 0.1, 0.5]) == expected


def test_a_route_that_was_measured_says_how_it_stands():
    rows = families.measured()["routes"]
    assert {name for name in ours() if families.standing(name)} == rows.keys() - {families.REFERENCE}
    assert any("better than hybrid_auto on none" in families.standing(name) for name in rows)
    assert {name for name in ours() if families.recommended(name)} == {
        *families.measured()["recommended"].values()
    }
