"""Pages run in-process over the real engine and store, with in-memory backends."""

import shutil
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from core.corpus import catalogue
from core.engine import engine as engine_module
from core.store import Store
from tests.fakes import FakeEngine
from tests.runs import make_run

FRAME = Path(__file__).resolve().parents[2] / "pages" / "frame.py"


@pytest.fixture(scope="session", autouse=True)
def as_one_server():
    """Let all visits have what the visitors of one server have in common.

    By itself each AppTest reads the metadata of every installed package in search of components, of which the
    pages use none, and compiles its scripts anew at each run: that takes longer than most pages do.
    """
    compiled = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: [])
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: compiled)
        yield


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Fill a folder by `make(folder)`, or, where that was done before under this key, by copying: each test
    has a folder of its own, and what takes long to make is made once.
    """
    made = {}

    def fill(folder, key, make):
        if key not in made:
            made[key] = tmp_path_factory.mktemp("once") / "made"
            make(made[key])
        shutil.copytree(made[key], folder, copy_function=shutil.copyfile)
        return folder

    return fill


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine with one searchable corpus, "tiny", and an empty store."""
    made = FakeEngine(tmp_path, store=Store(tmp_path / "runs.sqlite"))
    monkeypatch.setattr(engine_module, "shared_engine", lambda: made)
    tiny = catalogue.Known("tiny", "A tiny corpus", "folder", "ready", "", "memory", True)
    other = catalogue.Known("other", "Not there yet", "folder", "not built", "run: ...", "memory", True)
    known = {"tiny": tiny, "other": other}
    monkeypatch.setattr(catalogue, "known", lambda _: list(known.values()))
    monkeypatch.setattr(catalogue, "describe", lambda name, _: known[name])
    yield made
    made.store.close()


@pytest.fixture(scope="session")
def runs():
    """Runs by id: all well, with mishaps, with hostile text."""
    return {
        "good": make_run(mishaps=False, run_id="good", corpus="tiny"),
        "bad": make_run(run_id="bad", corpus="tiny"),
        "evil": make_run(hostile=True, run_id="evil", corpus="tiny"),
    }


@pytest.fixture
def stored(engine, runs):
    """The same, stored."""
    for run in runs.values():
        engine.store.save(run)
    assert engine.store.flush()
    return dict(runs)


@pytest.fixture
def visit(engine):
    """Open a page as a browser would: `visit("sessions.py")`, `visit(run="good")`."""

    def go(page=None, **params):
        app = AppTest.from_file(str(FRAME), default_timeout=20)
        page, _, query = (page or "").partition("?")
        params = {**dict(parse_qsl(query)), **params}
        for name, value in params.items():
            app.query_params[name] = value
        if page:
            app.switch_page(page)  # before anything is drawn: a link opens a page without the first one
        app.run()
        assert not app.exception, app.exception
        return app

    return go


@pytest.fixture
def view(visit):
    """Open a tab of a page: `view("release.py", "Ladder", evaluation="first")`."""

    def go(page, tab=None, **params):
        app = visit(page, **params, **({"tab": tab} if tab else {}))
        assert not app.exception, app.exception
        return app

    return go
