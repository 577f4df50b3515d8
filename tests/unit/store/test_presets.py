"""Named settings: kept, found by name, checked against the routes they are for."""

import pytest

from core.domain.errors import BadInput
from core.store import presets
from core.store.presets import Preset


def test_what_is_saved_is_there_under_its_name(store):
    made = Preset(" for  support ", "support", {"hybrid_linear": {"alpha": 0.3}}, 0.4, "dev: .47, test: .45")
    presets.save(store, made)
    presets.save(store, Preset("other", "web", {"bm25": {}}))
    (kept,) = presets.every(store, "support")
    assert (kept.name, kept.parameters, kept.evidence, kept.note) == (
        "for support",
        {"hybrid_linear": {"alpha": 0.3}},
        0.4,
        made.note,
    )
    assert kept.changed
    assert presets.named(store, "for support") == kept
    assert [one.name for one in presets.every(store)] == ["for support", "other"]


def test_saving_again_replaces_and_deleting_forgets(store):
    presets.save(store, Preset("a", "support", {"hybrid_linear": {"alpha": 0.3}}))
    presets.save(store, Preset("a", "support", {"hybrid_linear": {"alpha": 0.6}}))
    assert presets.named(store, "a").parameters == {"hybrid_linear": {"alpha": 0.6}}
    presets.delete(store, "a")
    with pytest.raises(BadInput, match="known: none"):
        presets.delete(store, "a")


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        (Preset("", "support", {"bm25": {}}), "1 to 64"),
        (Preset("x", "support"), "is empty"),
        (Preset("x", "support", {"hybrid_linear": {"alpha": 3}}), "alpha"),
        (Preset("x", "support", {"nothing": {}}), "nothing"),
        (Preset("x", "support", evidence=2.0), "0 to 1"),
    ],
)
def test_what_no_run_could_use_is_not_kept(store, preset, said):
    with pytest.raises(BadInput, match=said):
        presets.save(store, preset)
    assert presets.every(store) == ()
