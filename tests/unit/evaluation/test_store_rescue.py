"""A damaged file of sessions: one clear message, what can be read saved to a new file, and copies."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.cli import main
from core.domain.errors import BadInput, Unavailable
from core.domain.outputs import Pass
from core.domain.settings import Settings
from core.domain.types import Hit, Passage, Query, RouteResult, Run, Span, Turn
from core.engine import doctor
from core.evaluation.labels import desk
from core.store import PlaylistEntry, Store, files, rescue
from core.store.labels import Judgement, Pooled
from tests.stored import QUESTION

PAGE = 4096
ALL = [f"run{n}" for n in range(60)]
JUDGED = 150


def run(id):
    """One with passages of its own, which fill some pages."""
    own = [Passage(f"{id}-{n}", "doc.md", "Title", f"{id} {n} says " + "so " * 300, 0, 9) for n in range(3)]
    span = Span(1, None, "search", "RETRIEVER", 0.0, 1.0, output=Pass(f"{id} " * 300))
    hits = tuple(Hit(one, 1.0) for one in own)
    result = RouteResult("bm25", "BM25", "ok", 1.0, hits=hits, spans=(span,))
    held = {one.id: one for one in own}
    return Run(id, "2026-01-01", Query(f"What of {id}?"), "support", "f", {}, (result,), held)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file with runs, labels, a playlist and a conversation, as a process leaves it."""
    path = tmp_path_factory.mktemp("sound") / "sound.sqlite"
    store = Store(path)
    for id in ALL:
        store.save(run(id))
    store.tag("run7", ["seven"])
    store.save_playlist("Mine", [PlaylistEntry("What of it?", "support", "run7")])
    store.remember("demo", [Turn("user", "My box arrived crushed.")])
    desk.create(store, "Set", "support", [QUESTION])
    pool = [Pooled(Passage(f"p{n}", "d", "T", f"text {n}", 0, 9), (("bm25", 1),)) for n in range(JUDGED)]
    desk.add_to_pool(store, "Set", {QUESTION.id: pool})
    desk.judge_all(
        store, "Set", [Judgement(QUESTION.id, f"p{n}", "Ann", "person", "grade", 3) for n in range(JUDGED)]
    )
    store.close()
    return path


@pytest.fixture
def home(tmp_path, sound, monkeypatch):
    """A home folder with a copy of it."""
    shutil.copyfile(sound, tmp_path / "routescope.sqlite")
    monkeypatch.setattr("core.domain.settings.current", lambda: Settings(home=tmp_path))
    return tmp_path


@pytest.fixture
def path(home):
    return home / "routescope.sqlite"


def pages(path):
    return path.stat().st_size // PAGE


def spoil(path, page, with_=None):
    """Flip every bit of a page, but for the first bytes of the file."""
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        old = file.read(PAGE)
        file.seek(page * PAGE)
        file.write(with_ or bytes(byte ^ 0xFF for byte in old))


def whole(path):
    """The runs of a file, each compared with what was saved; it is sound and can be written."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with closing(Store(path)) as store:
        assert store.warnings == []
        found = [row.id for row in store.sessions(limit=1000)]
        for id in found:
            assert store.load(id) == run(id)
            assert id in [row.id for row in store.sessions(id, limit=1000)]
        for one in desk.sets(store):
            desk.load(store, one.name)
        store.playlists()
        store.save(replace(run("new"), created="2027"))
        assert store.flush()
        assert store.load("new") == replace(run("new"), created="2027")
        store.write(lambda connection: connection.execute("UPDATE runs SET deleted = 1 WHERE id = 'new'"))
        store.deletion.due()
    return found


@pytest.mark.slow
@pytest.mark.trust
def test_whatever_page_is_flipped_the_rest_is_saved(path):
    """Every eighth page, but for those on which a table begins or all are listed."""
    sound, beginnings = path.read_bytes(), roots(path)
    kept = []
    for page in range(5, pages(path), 8):
        if page in beginnings:
            continue
        path.write_bytes(sound)
        spoil(path, page)
        broken = path.read_bytes()
        found = rescue.recover(path)
        assert found.aside is None or found.aside.read_bytes() == broken
        assert found.aside or found.runs == len(ALL)  # it was free
        kept.append(len(whole(path)))
        assert kept[-1] == found.runs
        assert found.runs >= len(ALL) // 2  # rows of short runs stand by the dozen on a page
        assert found.judgements >= JUDGED // 3  # they stand on three pages
    assert len(kept) > 10
    assert sorted(kept)[len(kept) // 2] >= len(ALL) - 4


@pytest.mark.slow
@pytest.mark.parametrize("table", ["runs", "texts", "judgements", "search_data"])
def test_a_page_on_which_a_table_begins_takes_no_more_than_what_needs_it(path, table):
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    spoil(path, root - 1)
    found = rescue.recover(path)
    assert found.runs == (0 if table in ("runs", "texts") else len(ALL))
    assert found.judgements == (0 if table in ("judgements", "texts") else JUDGED)
    assert (found.playlists, found.turns) == (1, 1)
    assert len(whole(path)) == found.runs


def test_without_the_list_of_tables_nothing_is_changed(path):
    (page,) = [page for page in roots(path) if b"CREATE TABLE texts" in at(path.read_bytes(), page)]
    spoil(path, page)
    broken = path.read_bytes()
    with pytest.raises(BadInput, match=r"has no readable session data; replace it with a backup"):
        rescue.recover(path)
    assert path.read_bytes() == broken
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def at(data, page):
    return data[page * PAGE : (page + 1) * PAGE]


def roots(path):
    """The pages, from 0, on which a table begins or the tables are listed, but for the first one."""
    with closing(sqlite3.connect(path)) as connection:
        begun = connection.execute("SELECT rootpage - 1 FROM sqlite_master WHERE rootpage > 1").fetchall()
    data = path.read_bytes()
    listing = {page for page in range(1, pages(path)) if b"CREATE TABLE" in at(data, page)}
    return sorted({page for (page,) in begun} | listing)


@pytest.mark.slow
def test_runs_whose_texts_were_changed_are_not_saved_as_if_they_were_theirs(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b"run7 1 says so", b"run7 1 says no"))
    with closing(Store(path)) as store:
        assert store.load("run7") != run("run7")
    spoil(path, pages(path) - 1)
    assert rescue.recover(path).lost >= 1
    assert "run7" not in whole(path)


@pytest.mark.slow
def test_a_truncated_file_is_told_and_its_beginning_saved(path, capsys):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size * 2 // 3 // PAGE * PAGE + 1000)
    with closing(Store(path)) as store:
        with pytest.raises(Unavailable) as caught:
            store.load("run1")
        for told in (store.warnings[0], str(caught.value)):
            assert (
                f"malformed; rescue the readable runs with: python -m core sessions recover '{path}'" in told
            )
    assert main(["sessions", "recover", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] > len(ALL) // 4
    assert told["runs"] + told["lost"] <= len(ALL)
    assert len(whole(path)) == told["runs"]
    assert (path.parent / told["aside"]).stat().st_size < size


@pytest.mark.parametrize("content", [b"these are my notes\n" * 500, b"SQLite format 3\x00" + b"\xff" * 9000])
def test_what_is_no_database_is_told_and_left_alone(path, content, capsys):
    path.write_bytes(content)
    assert main(["sessions", "list"]) == 2
    assert "is not a RouteScope session file, or is damaged" in (told := capsys.readouterr().err)
    assert f"python -m core sessions recover '{path}'" in told
    assert len(told.splitlines()) == 1
    assert main(["sessions", "recover"]) == 2
    assert "has no readable session data" in capsys.readouterr().err
    assert path.read_bytes() == content
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize("count", [16, 40, 100])
def test_a_file_whose_first_bytes_are_gone_is_saved_whole(path, count):
    with path.open("r+b") as file:
        file.write(bytes(count))
    with pytest.raises((BadInput, Unavailable)):
        Store(path).load("run1")
    found = rescue.recover(path)
    assert (found.runs, found.lost, found.judgements, found.playlists, found.turns) == (
        len(ALL),
        0,
        JUDGED,
        1,
        1,
    )
    assert len(whole(path)) == len(ALL)


def test_what_people_made_is_saved(path):
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'results'").fetchone()
    spoil(path, root - 1)
    found = rescue.recover(path)
    assert (found.runs, found.lost) == (0, len(ALL))
    assert (found.judgements, found.playlists, found.turns) == (JUDGED, 1, 1)
    with closing(Store(path)) as store:
        assert len(desk.load(store, "Set").judgements) == JUDGED
        assert store.playlists()[0].entries[0].run == "run7"
        assert store.recall("demo")[0].text == "My box arrived crushed."


def test_what_is_in_the_log_alone_is_saved_too(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as reader, closing(Store(path)) as store:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM runs").fetchone()
        store.save(run("late"))
        store.flush()
        copy = path.parent / "copied.sqlite"
        for part in ("", "-wal"):
            shutil.copyfile(f"{path}{part}", f"{copy}{part}")
    spoil(copy, pages(copy) - 2)
    found = rescue.recover(copy)
    assert "late" in whole(copy)
    assert found.aside.with_name(f"{found.aside.name}-wal").exists()


@pytest.mark.slow
def test_a_whole_file_and_one_in_use_are_left_alone(path, capsys):
    before = path.read_bytes()
    assert main(["sessions", "recover"]) == 0
    assert "is whole: 60 runs" in capsys.readouterr().out
    assert path.read_bytes() == before
    spoil(path, pages(path) - 1)
    with closing(Store(path)) as store:
        store.note("run1", "I hold it open.")
        with pytest.raises(BadInput, match="is in use; stop the dashboard"):
            rescue.recover(path)
    with pytest.raises(BadInput, match="does not exist"):
        rescue.recover(path.parent / "nothing.sqlite")


@pytest.mark.trust
def test_a_disk_that_fills_up_leaves_the_damaged_file_as_it_is(path, monkeypatch):
    spoil(path, pages(path) - 1)
    broken = path.read_bytes()

    def small(at):
        connection = files.open_to_write(at)
        connection.execute("PRAGMA max_page_count = 80")
        return connection

    monkeypatch.setattr(rescue, "open_to_write", small)
    with pytest.raises(Unavailable, match="full; it is unchanged"):
        rescue.recover(path)
    assert path.read_bytes() == broken
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_backup_is_a_store(path, tmp_path, capsys):
    copy = tmp_path / "copy.sqlite"
    with closing(Store(path)) as store:
        store.save(run("late"))
        store.flush()
        assert main(["sessions", "backup", str(copy)]) == 0
    assert main(["sessions", "backup", str(copy)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert set(whole(copy)) == {*ALL, "late"}
    spoil(path, pages(path) // 2)
    assert main(["sessions", "backup", str(tmp_path / "second.sqlite")]) == 1
    assert "python -m core sessions recover" in capsys.readouterr().err
    assert not (tmp_path / "second.sqlite").exists()


def test_the_doctor_names_the_way_out(home, path):
    settings = Settings(home=home)
    assert [check.state for check in doctor.sessions_whole(settings)] == ["ok"]
    spoil(path, pages(path) // 2)
    (check,) = doctor.sessions_whole(settings)
    assert check.state == "failed"
    assert f"python -m core sessions recover '{path}'" in check.fix
    path.write_bytes(b"these are my notes" * 1000)
    (check,) = doctor.sessions(settings)
    assert check.state == "failed"
    assert f"python -m core sessions recover '{path}'" in check.fix


def test_the_doctor_tells_sizes_and_what_can_be_given_back(home, path, monkeypatch):
    settings = Settings(home=home)
    (home / "cache").mkdir()
    (home / "cache" / "llm.sqlite").write_bytes(b"x" * 5 * 2**20)
    (check,) = doctor.space(settings)
    assert (check.state, check.fix) == ("ok", None)
    assert "cache 5.0 MiB" in check.detail
    assert "sessions " in check.detail
    assert "indexes" not in check.detail
    monkeypatch.setattr(doctor, "LEAST_FREE", 2**16)
    with closing(Store(path)) as store:
        store.deletion.before(datetime(2030, 1, 1, tzinfo=UTC))
    (check,) = doctor.space(settings)
    assert check.state == "warning"
    assert "of the sessions file is unused" in check.detail
    assert "python -m core sessions vacuum" in check.fix
    files.vacuum(path)
    assert next(doctor.space(settings)).state == "ok"
    assert next(doctor.space(Settings(home=home / "nothing"))).detail.startswith("nothing stored yet")


def test_folders_that_go_while_they_are_counted_count_nothing(tmp_path, monkeypatch):
    """An index that is built anew takes its former folder away."""
    gone = tmp_path / "indexes" / "notes" / "former"
    gone.mkdir(parents=True)
    (gone.parent / "now").write_bytes(b"x" * 2048)
    look = os.scandir

    def scandir(path):
        if Path(path) == gone:
            gone.rmdir()
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    (check,) = doctor.space(Settings(home=tmp_path))
    assert "indexes 2.0 KiB" in check.detail
    assert not gone.exists()
