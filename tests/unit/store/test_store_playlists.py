"""Playlists in the store: kept in order, checked."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.errors import BadInput
from core.domain.types import Turn
from core.store import PlaylistEntry
from core.store.playlists import MAX_ENTRIES, clean_entries, from_document, to_document

ONE = PlaylistEntry(
    "How do I return a vase?", "support", "r1", (Turn("user", "Hello."),), ("bm25", "dense"), "First."
)

texts = st.text(max_size=30)
entries = st.builds(
    PlaylistEntry,
    texts.filter(str.strip),
    texts,
    st.none() | texts,
    st.lists(st.builds(Turn, st.sampled_from(["user", "assistant"]), texts), max_size=3).map(tuple),
    st.lists(texts, max_size=3).map(tuple),
    texts,
)


def test_a_playlist_keeps_its_entries_in_order_and_is_replaced_whole(store):
    two = PlaylistEntry("And the other one?", "support")
    assert store.playlists() == ()
    store.save_playlist("  Customer \n A ", [two, ONE, two])
    store.save_playlist("a second", [])
    assert [(one.name, one.entries) for one in store.playlists()] == [
        ("a second", ()),
        ("Customer A", (two, ONE, two)),
    ]
    store.save_playlist("Customer A", [ONE])
    assert store.playlists()[1].entries == (ONE,)
    assert store.playlists()[1].changed > "2026"
    store.delete_playlist("Customer A")
    assert [one.name for one in store.playlists()] == ["a second"]
    with pytest.raises(BadInput, match="no playlist 'Customer A'"):
        store.delete_playlist("Customer A")


@given(st.lists(entries, max_size=4))
def test_any_entry_is_read_as_it_was_written(given):
    assert clean_entries(given) == tuple(given)
    assert [from_document(to_document(entry)) for entry in given] == given


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"question": " "}, "must not be blank"),
        ({"question": "x" * 10_001}, "10,000"),
        ({"note": "x" * 20_001}, "20,000"),
        ({"routes": ("r",) * 201}, "at most 200"),
        ({"routes": (1,)}, "are texts"),
        ({"run": 7}, "an id or None"),
        ({"history": (Turn("system", "x"),)}, "user or assistant"),
    ],
)
def test_a_wrong_entry_is_named_and_nothing_is_saved(store, wrong, told):
    with pytest.raises(BadInput, match=f"entry 2: .*{told}"):
        store.save_playlist("p", [ONE, replace(ONE, **wrong)])
    assert store.playlists() == ()


def test_too_many_entries_are_refused(store):
    with pytest.raises(BadInput, match="at most 500"):
        store.save_playlist("p", [ONE] * (MAX_ENTRIES + 1))
