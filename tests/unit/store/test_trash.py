"""Every deletion can be undone for a while; afterwards nothing of it is left in the file."""

import time
from pathlib import Path

import pytest

from core.cli import main
from core.domain import people
from core.domain import settings as settings_module
from core.domain.errors import BadInput, NotAllowed
from core.domain.people import Person, acting
from core.domain.postgres import Dsn
from core.domain.settings import Settings
from core.engine import engine as engine_module
from core.evaluation import experiment_store
from core.store import PlaylistEntry, Store, presets
from tests import postgres_server
from tests.until import until

pytestmark = pytest.mark.trust
CAT, EVE = Person("cat@example.org", "editor"), Person("eve@example.org", "editor")
WORDS = "xylophone customs"
PRESET = presets.Preset("Careful \ud83d", "support", {"hybrid_rrf": {"k": 10}}, 0.5, f"note {WORDS}")


@pytest.fixture(params=["file", "server"])
def store(request, tmp_path):
    made = Store(tmp_path / "a.sqlite" if request.param == "file" else Dsn(postgres_server.fresh()))
    people.keep_in(made)
    yield made
    people._ledgers.clear()
    made.close()


def content(store):
    return [(one.name, one.entries, one.changed) for one in store.playlists()], presets.every(store)


def test_playlists_and_presets_come_back_as_they_were(store):
    store.save_playlist("Demo", [PlaylistEntry(f"{WORDS} \ud83d?", "support", note="one")])
    presets.save(store, PRESET)
    before = content(store)
    store.delete_playlist("Demo")
    presets.delete(store, PRESET.name)
    assert content(store) == ([], ())
    assert (store.deleted("playlist"), store.deleted("preset")) == (["Demo"], [PRESET.name])
    store.restore("playlist", "Demo")
    store.restore("preset", PRESET.name)
    assert content(store) == before
    assert (store.deleted("playlist"), store.deleted("preset")) == ([], [])
    with pytest.raises(BadInput):
        store.restore("playlist", "Demo")
    store.delete_playlist("Demo")
    store.save_playlist("Demo", [])
    with pytest.raises(BadInput, match="exists"):
        store.restore("playlist", "Demo")
    for name in ("Nope", "Demo"):
        with pytest.raises(BadInput, match="no deleted preset"):
            store.restore("preset", name)


def test_nothing_is_left_after_the_undo_time(store):
    store.save_playlist("Demo", [PlaylistEntry(f"{WORDS}?", "support")])
    presets.save(store, PRESET)
    store.deletion.undo_s = 0.2
    store.delete_playlist("Demo")
    presets.delete(store, PRESET.name)
    until(lambda: not store.deleted("playlist") and not store.deleted("preset"))
    with pytest.raises(BadInput):
        store.restore("preset", PRESET.name)
    if isinstance(store.path, Path):
        files = [store.path, store.path.with_name(f"{store.path.name}-wal")]
        until(lambda: not any(WORDS.encode() in one.read_bytes() for one in files if one.exists()))


def test_who_may_not_delete_may_not_restore(store):
    with acting(CAT):
        presets.save(store, PRESET)
        presets.delete(store, PRESET.name)
    with acting(EVE), pytest.raises(NotAllowed):
        store.restore("preset", PRESET.name)
    with acting(CAT):
        store.restore("preset", PRESET.name)
        assert store.maker("preset saved", PRESET.name) == CAT.account
        presets.delete(store, PRESET.name)


def evaluation(home, name="mine"):
    folder = home / "evaluations" / name
    folder.mkdir(parents=True)
    (folder / experiment_store.LABELLED).write_text("{}")
    (folder / experiment_store.RUNS).write_bytes(b"runs")
    return folder


def test_an_evaluation_comes_back_and_is_gone_after_the_undo_time(tmp_path):
    settings = Settings(home=tmp_path, delete_undo_minutes=10)
    folder = evaluation(tmp_path)
    experiment_store.remove(settings, "mine")
    assert not folder.exists()
    assert (experiment_store.names(settings), experiment_store.deleted(settings)) == ([], ["mine"])
    experiment_store.restore(settings, "mine")
    assert (folder / experiment_store.RUNS).read_bytes() == b"runs"
    assert (experiment_store.names(settings), experiment_store.deleted(settings)) == (["mine"], [])
    experiment_store.remove(settings, "mine")
    evaluation(tmp_path)
    with pytest.raises(BadInput, match="exists"):
        experiment_store.restore(settings, "mine")
    with pytest.raises(BadInput, match="there are: mine"):
        experiment_store.restore(settings, "other")
    later = Settings(home=tmp_path, delete_undo_minutes=0.001)
    time.sleep(0.1)
    assert experiment_store.names(later) == ["mine"]  # as the next process does
    assert list((tmp_path / "evaluations" / experiment_store.DELETED).iterdir()) == []
    experiment_store.remove(later, "mine")
    until(lambda: list((tmp_path / "evaluations" / experiment_store.DELETED).iterdir()) == [])


def test_commands_list_and_restore(tmp_path, monkeypatch, capsys):
    settings = Settings(home=tmp_path)
    monkeypatch.setattr(settings_module, "current", lambda: settings)
    monkeypatch.setattr(engine_module, "_shared", [])  # another test may have left the engine of its folder
    with_store = Store(tmp_path / "routescope.sqlite")
    with_store.save_playlist("Demo", [])
    with_store.delete_playlist("Demo")
    with_store.close()
    evaluation(tmp_path)
    experiment_store.remove(settings, "mine")
    for kind, name in (("playlist", "Demo"), ("evaluation", "mine")):
        assert main(["sessions", "restore", kind]) == 0
        assert capsys.readouterr().out == f"{name}\n"
        assert main(["sessions", "restore", kind, name]) == 0
        assert main(["sessions", "restore", kind, name]) == 2
        capsys.readouterr()
    assert experiment_store.names(settings) == ["mine"]
