"""The program without what only some systems have: each command, and each fallback by itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import urllib.request
import venv
from contextlib import closing, nullcontext

import psutil
import pytest

from core.domain import process_setup, system
from core.domain.settings import PROJECT

pytestmark = pytest.mark.process
FILES = {
    "returns.md": "# Returns\n\nStart a return on the page Orders within 30 days.\n",
    "refunds.md": "# Refunds\n\nMoney is back on your card after five working days.\n",
    "parts.csv": "id,text\np1,The lamp takes an E27 bulb.\np2,The lid of the teapot is sold alone.\n",
}
QUESTIONS = [
    {"id": f"q{n}", "text": text, "relevant": [{"doc": doc, "grade": 3}]}
    for n, (text, doc) in enumerate(
        [("How do I start a return?", "returns.md"), ("When is my money back?", "refunds.md")] * 2
    )
]
PIPELINE = """
import subprocess, sys

def search(question):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if question == "hang":
        with open("child", "w", encoding="utf-8") as file:
            file.write(str(child.pid))
        child.wait()
    child.kill()
    return [{"doc_id": "returns.md", "text": "Start a return on the page Orders within 30 days."}]
"""
ASKED = """
import json, sys
from pathlib import Path
from core.backends.sql.database import Worker
from core.domain import system
assert system.WINDOWS and not system.LINUX and system.resource is None
asked = {"do": "query", "tables": ["t"], "values": {},
         "limits": {"seconds": 60, "rows": 5, "value": 50, "result": 500}}
worker = Worker(Path(sys.argv[1]), lambda: False)
print(json.dumps(worker.ask({**asked, "sql": "SELECT a FROM t"}, 5, 10_000, lambda: False)["rows"]))
endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n, t"
try:
    worker.ask({**asked, "sql": endless}, 0.2, 10_000, lambda: False)
except Exception as error:
    print(json.dumps(type(error).__name__))
worker.kill()
"""
# Each ends a process by a limit of its own.
LIMITS = {
    "system.limit_time(0)\nwhile True: pass": "time",
    "system.limit_memory(150 << 20)\nheld = b'x' * (300 << 20)\ntime.sleep(60)": "memory",
    "system.end_after(60)\nsystem.end_after(0)\nsystem.end_after(0.1)\ntime.sleep(60)": "time",
}


class Elsewhere:
    """A Python that has nothing but what every system has (see `tests/hidden_system.py`)."""

    def __init__(self, folder):
        self.home, self.python = folder / "home", folder / "python" / "bin" / "python"
        self.home.mkdir()
        venv.create(folder / "python", symlinks=True)
        (own,) = (folder / "python" / "lib").glob("python*/site-packages")
        shutil.copy(PROJECT / "tests" / "hidden_system.py", own)
        where = f"HOME, PROJECT = {str(self.home.resolve())!r}, {str(PROJECT)!r}\n"
        (own / "hidden_where.py").write_text(where, encoding="utf-8")
        lines = f"{sysconfig.get_path('purelib')}\nimport hidden_system\n"
        (own / "hidden.pth").write_text(lines, encoding="utf-8")

    def run(self, *arguments, exits=0):
        environment = {**os.environ, "ROUTESCOPE_HOME": str(self.home)}
        done = subprocess.run(
            [self.python, *map(str, arguments)],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == exits, done.stdout + done.stderr
        assert "hidden:" not in done.stdout + done.stderr  # nothing was tried that is not there
        return done.stdout

    def core(self, *arguments, exits=0):
        return self.run("-m", "core", *arguments, exits=exits)

    def each(self, *commands):
        """Run commands one after another in one process, which ends with 0 if all do."""
        code = (
            "import json, sys; from core.cli import main; sys.exit(any(map(main, json.loads(sys.argv[1]))))"
        )
        return self.run("-c", code, json.dumps(commands, default=str))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    made = Elsewhere(folder)
    for name, text in FILES.items():
        (folder / "faq").mkdir(exist_ok=True)
        (folder / "faq" / name).write_text(text, encoding="utf-8")
    lines = (json.dumps(one) + "\n" for one in QUESTIONS)
    (folder / "questions.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "pipe.py").write_text(PIPELINE, encoding="utf-8")
    made.core("index", folder / "faq")
    return made


def test_questions_and_own_pipelines_work_with_every_feature_removed(elsewhere):
    own = f"mine={elsewhere.home.parent / 'pipe.py'}:search"
    told = elsewhere.core(
        "ask",
        "How do I start a return?",
        "--corpus",
        "faq",
        "--routes",
        "bm25,dense",
        "--route",
        own,
        "--json",
    )
    results = {one["route"]: one for one in json.loads(told)["results"]}
    assert {route: one["error"] for route, one in results.items()} == {
        "bm25": None,
        "dense": None,
        "mine": None,
    }


def test_an_index_is_made_again_although_open_files_cannot_be_replaced(elsewhere):
    folder = elsewhere.home.parent / "faq"
    (folder / "bulbs.md").write_text("# Bulbs\n\nA bulb lasts 15,000 hours.\n", encoding="utf-8")
    elsewhere.core("index", "faq")
    told = elsewhere.core(
        "ask", "How long does a bulb last?", "--corpus", "faq", "--routes", "bm25", "--json"
    )
    assert "bulbs.md" in told


def test_evaluations_gates_and_labels_work_with_every_feature_removed(elsewhere):
    folder = elsewhere.home.parent
    questions = ("--questions", folder / "questions.jsonl")
    measured = [
        ("eval", "faq", *questions, "--routes", "bm25,dense", "--name", name, "--out", folder / name)
        for name in ("before", "after")
    ]
    elsewhere.each(
        *measured,
        ("gate", folder / "after", "--against", folder / "before", "--junit", folder / "junit.xml"),
        ("labels", "create", "set", "--corpus", "faq", *questions, "--with-labels"),
        ("labels", "pool", "set"),
        ("labels", "export", "set", "--format", "csv", "--out", folder / "set.csv"),
        ("labels", "import", "set", folder / "set.csv"),
    )
    assert "returns.md" in (folder / "set.csv").read_text(encoding="utf-8")


def test_a_damaged_store_is_replaced_although_open_files_cannot_be_renamed(elsewhere):
    elsewhere.core("ask", "How do I start a return?", "--corpus", "faq", "--routes", "bm25")
    (store,) = elsewhere.home.glob("*.sqlite")
    with store.open("r+b") as file:
        file.write(b"no database")
    told = json.loads(elsewhere.core("sessions", "recover", "--json"))
    assert told["runs"] > 0
    assert list(elsewhere.home.glob("*.damaged-*"))


def test_the_dashboard_serves_and_ends_with_its_command(elsewhere):
    environment = {**os.environ, "ROUTESCOPE_HOME": str(elsewhere.home), "ROUTESCOPE_FIRST_START": "off"}
    command = [elsewhere.python, "-m", "core", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    ) as serving:
        assert serving.stdout is not None
        (dashboard,) = _started_by(serving, serving.stdout.readline())
        serving.send_signal(signal.SIGINT)
        assert serving.wait(30) == 0
    assert not dashboard.is_running()


def _started_by(serving, told):
    """Return the processes of a server that tells its address, once it answers there."""
    address = told.partition(": ")[2].strip().replace("localhost", "127.0.0.1")
    with urllib.request.urlopen(f"{address}/_stcore/health", timeout=60) as reply:
        assert reply.status == 200
    return psutil.Process(serving.pid).children()


def test_queries_are_answered_and_ended_without_polling_or_alarms(elsewhere, tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as made:
        made.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (7);")
    told = elsewhere.run("-c", ASKED, tmp_path / "t.sqlite").splitlines()
    assert [json.loads(line) for line in told] == [[[7]], "TooSlow"]


@pytest.mark.parametrize(("code", "how"), LIMITS.items())
def test_a_process_ends_itself_at_its_limits(elsewhere, code, how):
    exits = system.OUT_OF_TIME if how == "time" else system.OUT_OF_MEMORY
    elsewhere.run("-c", f"import time\nfrom core.domain import system\n{code}", exits=exits)
    assert system.how_ended(exits) == how


def test_a_pipeline_ends_with_all_that_it_started(elsewhere):
    file = elsewhere.home.parent / "pipe.py"
    settings = f"[external.mine]\nfunction = '{file}:search'\ntimeout_s = 2\n"
    (elsewhere.home / "routescope.toml").write_text(settings, encoding="utf-8")
    elsewhere.core("ask", "hang", "--corpus", "faq", "--routes", "mine", exits=1)
    number = int((file.parent / "child").read_text(encoding="utf-8"))
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE


def test_a_pipe_is_read_by_a_thread_without_polling(monkeypatch):
    monkeypatch.delattr(system.select, "poll")
    command = [sys.executable, "-c", "import sys; sys.stdin.read(1); print('x' * 10_000_000)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        incoming = system.Incoming(process.stdout)
        assert incoming.read(0.01) is None
        process.stdin.close()
        got = 0
        while block := incoming.read(20):
            got += len(block)
        assert got == 10_000_001
        assert incoming.read(0) == b""


def test_who_stops_reading_holds_no_thread(monkeypatch):
    monkeypatch.delattr(system.select, "poll")
    with subprocess.Popen(
        [sys.executable, "-c", "print('x' * 10_000_000)"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        incoming = system.Incoming(process.stdout)
        assert incoming.read(20)
        process.kill()
        incoming.close()
    for thread in threading.enumerate():
        if thread.name == "pipe":
            thread.join(20)
            assert not thread.is_alive()


@pytest.mark.parametrize(("windows", "tries", "raises"), [(False, 1, True), (True, 3, False)])
def test_a_file_in_use_is_replaced_once_it_is_closed(monkeypatch, tmp_path, windows, tries, raises):
    real, tried = os.replace, []

    def replace(source, target):
        tried.append(source)
        if len(tried) < 3:
            raise PermissionError(13, "in use")
        real(source, target)

    (tmp_path / "new").write_text("new", encoding="utf-8")
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(system, "WINDOWS", windows)
    with pytest.raises(PermissionError) if raises else nullcontext():
        system.replace(tmp_path / "new", tmp_path / "old")
    assert (len(tried), (tmp_path / "old").exists()) == (tries, not raises)


def test_without_user_ids_a_file_is_ours(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "getuid")
    with (tmp_path / "state").open("w", encoding="utf-8") as file:
        assert system.is_ours(file)


def test_a_command_ends_its_dashboard_by_closing_its_input():
    code = """
import os, signal, sys, time
from core.domain import process_setup, system
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
system.WINDOWS = True
process_setup.end_with_parent()
print("begun", flush=True)
try:
    for _ in range(600):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, process_setup.PARENT: "stdin"}
    with subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.stdin.close()
        assert process.stdout.read() == "interrupted\n"
