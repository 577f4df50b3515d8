"""`sessions`: the stored runs listed, deleted for good, made smaller, copied."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from core.domain import settings as settings_module
from core.domain.settings import Settings
from core.domain.types import Query, RouteResult, Run
from core.engine import engine as engine_module
from core.store import Store
from tests.fakes import FakeEngine

NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The home folder's, with runs asked today, 20, 40 and 60 days ago; the oldest is deleted."""
    made = Store(tmp_path / "routescope.sqlite")
    engine = FakeEngine(tmp_path, store=made)
    monkeypatch.setattr(engine_module, "shared_engine", lambda: engine)
    monkeypatch.setattr(settings_module, "current", lambda: Settings(home=tmp_path))
    for days in (0, 20, 40, 60):
        created = (NOW - timedelta(days=days, minutes=1)).isoformat(timespec="milliseconds")
        result = RouteResult("bm25", "BM25", "ok", 1.0)
        made.save(Run(f"run{days}", created, Query(f"asked {days}"), "support", "f", {}, (result,)))
    made.delete("run60")
    yield made
    made.close()


def ids(store):
    return [row.id for row in store.sessions()]


def test_the_list_has_what_is_promised(call, store):
    code, out, err = call("sessions", "list", "--json")
    assert (code, err) == (0, "")
    listed = json.loads(out)["sessions"]
    assert [one["id"] for one in listed] == ["run0", "run20", "run40"]
    assert {"id", "question", "created", "corpus", "status"} <= listed[0].keys()
    assert (listed[0]["question"], listed[0]["corpus"], listed[0]["status"]) == ("asked 0", "support", "done")
    code, out, _ = call("sessions", "list", "--search", "20", "--limit", 1)
    assert (code, "asked 20" in out, "1 of 1 runs" in out) == (0, True, True)
    assert "No runs match" in call("sessions", "list", "--corpus", "nope")[1]


def test_a_purge_asks_first_and_says_how_many(call, store):
    code, out, err = call("sessions", "purge", "--older-than", "30d")
    assert (code, out) == (2, "")
    assert err.startswith("error: 2 runs asked before ")
    assert "would be permanently deleted; add --yes to do it" in err
    assert len(ids(store)) == 3
    code, out, _ = call("sessions", "purge", "--older-than", "30d", "--yes", "--json")
    assert (code, json.loads(out)["runs"]) == (0, 2)
    assert ids(store) == ["run0", "run20"]
    assert call("sessions", "purge", "--older-than", "30d")[0] == 0  # nothing to ask about
    assert "Permanently deleted 1 runs" in call("sessions", "purge", "--older-than", "2w", "--yes")[1]
    assert ids(store) == ["run0"]
    assert b"asked 20" not in store.path.read_bytes()


@pytest.mark.parametrize(("answer", "left"), [("n", 3), ("", 3), ("y", 2)])
def test_on_a_terminal_it_is_asked(call, store, monkeypatch, answer, left):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answer)
    code, _, err = call("sessions", "purge", "--older-than", "720h")
    assert code == (0 if answer == "y" else 1)
    assert ("stopped by the user" in err) == (answer != "y")
    assert len(ids(store)) == left


def test_an_age_that_is_none_is_refused(call, store):
    for age in ("30", "d", "-1d", "1.5d", "30 d", "30m", "", "999999d"):
        code, _, err = call("sessions", "purge", "--older-than", age, "--yes")
        assert (code, "use a whole number of hours, days or weeks: 12h, 30d, 8w" in err) == (2, True)
    code, _, err = call("sessions", "purge", "--yes")
    assert (code, "--older-than" in err) == (2, True)
    assert len(ids(store)) == 3


def test_vacuum_and_backup(call, store, tmp_path):
    code, out, _ = call("sessions", "vacuum", "--json")
    told = json.loads(out)
    assert (code, told["after"]) == (0, store.path.stat().st_size)
    code, out, _ = call("sessions", "backup", tmp_path / "copy.sqlite", "--json")
    assert (code, json.loads(out)["bytes"]) == (0, (tmp_path / "copy.sqlite").stat().st_size)
    copy = Store(tmp_path / "copy.sqlite")
    assert ids(copy) == ids(store)
    copy.close()
    code, _, err = call("sessions", "backup", tmp_path / "no" / "copy.sqlite")
    assert (code, "cannot be copied" in err) == (1, True)


def test_the_undo_time_is_a_setting(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_module, "_shared", [])
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path))
    monkeypatch.setenv("ROUTESCOPE_DELETE_UNDO_MINUTES", "0")
    settings_module.current.cache_clear()
    try:
        store = engine_module.shared_engine().store
        assert store.path.parent == tmp_path
        assert store.deletion.undo_s == 0
        store.save(Run("gone", "2026", Query("q"), "support", "f", {}, ()))
        store.delete("gone")
        assert store.deletion.count(datetime(2030, 1, 1, tzinfo=UTC)) == 0
        monkeypatch.setenv("ROUTESCOPE_DELETE_UNDO_MINUTES", "2.5")
        assert engine_module.reload_engine().store.deletion.undo_s == 150
        store.close()
    finally:
        settings_module.current.cache_clear()
