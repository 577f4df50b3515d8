"""What a presentation says of a run, against rankings counted by hand."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from core.analysis.presentation import arranged, found, headline, sample_entries
from core.domain.relevance import relevant
from core.domain.types import Hit, Passage, RouteResult
from tests.runs import make_run


def ranked(name, ids):
    hits = tuple(Hit(Passage(id, id, id, id), 1 / rank) for rank, id in enumerate(ids, 1))
    return RouteResult(name, name.title(), "ok", 1.0, hits=hits)


def run_of(**lists):
    base = make_run(mishaps=False)
    return replace(base, results=tuple(ranked(name, ids) for name, ids in lists.items()))


GOLD = {"a": 3, "b": 2, "c": 1}


def test_routes_are_told_by_what_they_found():
    run = run_of(early="axyzbw", late="xyzwva", none="xyzwvu")
    told = found(run, GOLD, 5)
    assert [(one.result.route, one.in_top, one.best) for one in told] == [
        ("early", 2, 1),
        ("late", 0, 6),
        ("none", 0, None),
    ]
    told = headline(run, GOLD, 5)
    assert told == "Relevant passages in the top 5, of 2: 2 in Early; 0 in Late, None."
    assert [result.route for result in arranged(run, GOLD, 5).results] == ["early", "late", "none"]


def test_background_counts_only_where_there_is_nothing_better():
    assert relevant(GOLD) == ["a", "b"]
    assert relevant({"c": 1}) == ["c"]
    assert relevant({"d": 0}) == []
    assert relevant({}) == []


def test_without_labels_it_tells_how_far_the_routes_agree():
    assert (
        headline(run_of(one="ab", two="ab", three="ba"), {}, 5) == "3 routes rank 2 different passages first."
    )
    assert headline(run_of(one=""), {}, 5) == "No route found a passage."
    all_alike = headline(run_of(one="ab", two="ba"), GOLD, 5)
    assert all_alike == "Every route has 2 of 2 relevant passages in its top 5."


@given(st.lists(st.permutations("abcdefgh"), min_size=1, max_size=6))
def test_nothing_is_lost_or_counted_twice(orders):
    run = run_of(**{f"r{n}": order for n, order in enumerate(orders)})
    told = found(run, GOLD, 5)
    assert sorted(one.result.route for one in told) == sorted(result.route for result in run.results)
    for one in told:
        assert one.in_top == len({"a", "b"} & {hit.passage.id for hit in one.result.hits[:5]})
    assert [one.in_top for one in told] == sorted((one.in_top for one in told), reverse=True)


def test_samples_are_a_playlist():
    entries = sample_entries("support")
    assert len(entries) >= 10
    assert all(entry.run is None and entry.note for entry in entries)
    assert sample_entries("nothing-like-this") == ()
