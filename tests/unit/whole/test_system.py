"""The program without what only some systems have: each command, and each fallback by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

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
        print(child.pid, file=sys.stderr, flush=True)
        child.wait()
    child.kill()
    return [{"id": "returns.md", "text": "Start a return on the page Orders within 30 days."}]
"""
ASKED = """
import json, sys, time
from pathlib import Path
import psutil
from core.backends.sql.worker import Worker
from core.corpus.chunk import Chunking
from core.corpus.load_report import LoadReport
from core.corpus.reading import Limits, Reader
from core.domain import system
assert system.WINDOWS and not system.LINUX and system.resource is None
base = {"do": "query", "tables": ["t"], "values": {},
        "limits": {"seconds": 60, "rows": 5, "value": 50, "result": 500}}
worker = Worker(Path(sys.argv[1]), lambda: False)
print(json.dumps(worker.ask({**base, "sql": "SELECT a FROM t"}, 5, 10_000, lambda: False)))
slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n, t"
try:
    worker.ask({**base, "sql": slow}, 0.2, 10_000, lambda: False)
except Exception as error:
    print(json.dumps(type(error).__name__))
worker.kill()
for limits in (Limits(memory=8 << 20), Limits(seconds=0)):
    report = LoadReport()
    with Reader(limits=limits) as reader:
        try:
            print(json.dumps(len(list(reader.documents(Path(sys.argv[2]), Chunking(), report)))))
        except Exception as error:
            print(json.dumps(str(error)))
"""


class Elsewhere:
    """A Python that has nothing but what every system has (see `tests/hidden_system.py`)."""

    def __init__(self, folder: Path) -> None:
        self.home, self.python = folder / "home", folder / "python" / "bin" / "python"
        self.home.mkdir()
        venv.create(folder / "python", symlinks=True)
        (own,) = (folder / "python" / "lib").glob("python*/site-packages")
        shutil.copy(PROJECT / "tests" / "hidden_system.py", own)
        where = f"HOME, PROJECT = {str(self.home.resolve())!r}, {str(PROJECT)!r}\n"
        (own / "hidden_where.py").write_text(where, encoding="utf-8")
        lines = f"{sysconfig.get_path('purelib')}\nimport hidden_system\n"
        (own / "hidden.pth").write_text(lines, encoding="utf-8")

    def run(self, *arguments: object, exits: int = 0) -> str:
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
        return done.stdout

    def core(self, *arguments: object, exits: int = 0) -> str:
        return self.run("-m", "core", *arguments, exits=exits)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
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


def test_questions_and_own_pipelines_work_with_every_feature_removed(elsewhere: Elsewhere) -> None:
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
    assert {one["status"] for one in results.values()} == {"ok"}
    assert len(results) == 3


def test_an_index_is_made_again_although_open_files_cannot_be_replaced(elsewhere: Elsewhere) -> None:
    folder = elsewhere.home.parent / "faq"
    (folder / "bulbs.md").write_text("# Bulbs\n\nA bulb lasts 15,000 hours.\n", encoding="utf-8")
    elsewhere.core("index", "faq")
    told = elsewhere.core(
        "ask", "How long does a bulb last?", "--corpus", "faq", "--routes", "bm25", "--json"
    )
    assert "bulbs.md" in told


def test_evaluations_gates_and_labels_work_with_every_feature_removed(elsewhere: Elsewhere) -> None:
    folder = elsewhere.home.parent
    questions = ("--questions", folder / "questions.jsonl")
    for name in ("before", "after"):
        elsewhere.core(
            "eval", "faq", *questions, "--routes", "bm25,dense", "--name", name, "--out", folder / name
        )
    elsewhere.core("gate", folder / "after", "--against", folder / "before", "--junit", folder / "junit.xml")
    elsewhere.core("labels", "create", "set", "--corpus", "faq", *questions, "--with-labels")
    elsewhere.core("labels", "pool", "set")
    elsewhere.core("labels", "export", "set", "--format", "csv", "--out", folder / "set.csv")
    elsewhere.core("labels", "import", "set", folder / "set.csv")
    elsewhere.core("sessions", "recover")
    assert "returns.md" in (folder / "set.csv").read_text(encoding="utf-8")
