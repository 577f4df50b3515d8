"""A store copied from a file into PostgreSQL and back: nothing is lost or changed, and it can be resumed."""

import subprocess
from contextlib import closing

import pytest

from core.domain.errors import BadInput
from core.domain.types import Passage, Query, Turn
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.store import PlaylistEntry, Store, copying, presets
from core.store.files import open_to_write
from core.store.labels import Judgement, Pooled
from core.store.postgres import Dsn
from core.store.rescue import backup
from tests.postgres_server import fresh, server
from tests.runs import make_run

pytestmark = pytest.mark.postgres
IDS = ["a", "b"]


def filled(place):
    """A store with all that people make; its bundle."""
    with closing(Store(place)) as store:
        for n, id in enumerate(IDS):
            store.save(make_run(run_id=id, hostile=bool(n)))
        assert store.flush()
        store.tag("a", ["x", 'quo"ted', "\ud83d"])
        store.note("b", "see \ud83d rank \x00 2")
        store.remember("talk", [Turn("user", "odd \x00 \ud83d"), Turn("assistant", "yes")], run="a")
        for name in ("list", "thrown \ud83d"):
            store.save_playlist(name, [PlaylistEntry("What?", "tiny", "a")])
        store.delete_playlist("thrown \ud83d")
        presets.save(store, presets.Preset("p", "tiny", {}, 0.5, "note"))
        desks.create(store, "set", "tiny", [Question("q", Query("What?"))])
        desks.add_to_pool(
            store, "set", {"q": [Pooled(Passage("p", "d", "T", "Words.", 0, 6), (("bm25", 1),))]}
        )
        desks.judge(store, "set", Judgement("q", "p", "Ann", "person", "grade", 2, "good"))
        store.record("ann@example.org", "preset saved", "p")
        store.spend("ann@example.org", 12)
        return store.export_bundle(IDS)


def everything(place):
    with closing(Store(place)) as store:
        return (
            store.export_bundle(IDS),
            store.sessions(),
            store.recall("talk"),
            store.playlists(),
            store.deleted("playlist"),
            presets.every(store),
            desks.load(store, "set"),
            store.choices(),
            store.count("see"),
            store.done(),
            store.spent_today(),
        )


def copy(one, two, **more):
    return copying.copy(one, two, progress=lambda *_: None, **more)


@pytest.mark.slow
def test_there_and_back_is_byte_equal(tmp_path):
    one, two, three = tmp_path / "a.sqlite", Dsn(fresh()), tmp_path / "c.sqlite"
    bundle = filled(one)
    there, back = copy(one, two), copy(two, three)
    assert everything(one) == everything(two) == everything(three)
    assert everything(two)[0] == bundle
    assert [(c.table, c.rows, c.sha256) for c in there] == [(c.table, c.rows, c.sha256) for c in back]
    assert {c.table for c in there if not c.rows} == {"purged"}
    with closing(Store(two)) as store:  # numbers go on behind those that were copied
        store.save(make_run(run_id="c"))
        assert store.flush()
        assert desks.judge(store, "set", Judgement("q", "p", "Bob", "person", "grade", 1, "")) == 2


def test_a_dump_restored_elsewhere_gives_equal_exports(tmp_path):
    one, two = fresh(), fresh()
    bundle = filled(Dsn(one))
    bin_path = server().bin_path
    dump = tmp_path / "routescope.dump"
    made = [bin_path / "pg_dump", "--format=custom", "--schema=routescope", "--file", dump, one]
    subprocess.run(made, check=True)
    restored = [bin_path / "pg_restore", "--exit-on-error", "--single-transaction", "--dbname", two, dump]
    subprocess.run(restored, check=True)
    assert everything(Dsn(one)) == everything(Dsn(two))
    assert everything(Dsn(two))[0] == bundle


def test_a_file_put_back_gives_equal_exports(tmp_path):
    bundle = filled(tmp_path / "a.sqlite")
    backup(tmp_path / "a.sqlite", tmp_path / "b.sqlite")
    assert everything(tmp_path / "a.sqlite") == everything(tmp_path / "b.sqlite")
    assert everything(tmp_path / "b.sqlite")[0] == bundle


def test_an_interrupted_copy_goes_on(tmp_path, monkeypatch):
    one, two = tmp_path / "a.sqlite", Dsn(fresh())
    filled(one)
    monkeypatch.setattr(copying, "BATCH", 3)

    def stop(table, done, of):
        if table == "results":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copying.copy(one, two, progress=stop)
    rest = {c.table: c for c in copy(one, two)}
    assert rest["runs"].new == 0
    assert 0 < rest["results"].new < rest["results"].rows
    assert {c.new for c in copy(one, two)} == {0}
    assert everything(one) == everything(two)


def test_a_target_with_other_data_is_refused_unless_told(tmp_path):
    one, two = tmp_path / "a.sqlite", Dsn(fresh())
    filled(one)
    with closing(Store(two)) as store:
        store.save(make_run(run_id="other"))
        assert store.flush()
    with pytest.raises(BadInput, match=r"rows in \w+ that .*add --replace"):
        copy(one, two)
    with closing(Store(two)) as store:
        assert store.present(["other"]) == {"other"}
    copy(one, two, replace=True)
    assert everything(one) == everything(two)


def test_what_is_not_there_or_the_same_is_refused(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        copy(tmp_path / "none.sqlite", tmp_path / "b.sqlite")
    open_to_write(tmp_path / "a.sqlite").close()
    with pytest.raises(BadInput, match="onto itself"):
        copy(tmp_path / "a.sqlite", tmp_path / "a.sqlite")
