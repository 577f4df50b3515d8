"""`make route`: one new file in core/routes is a whole route, and its test notices when it breaks."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from core.domain.settings import PROJECT
from core.routes.registry import routes
from scripts.new_route import create

pytestmark = pytest.mark.process

PARTS = ("core", "ui", "pages", "tests", "scripts")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The project's code without anything that was made from it."""
    folder = tmp_path_factory.mktemp("clone")
    for name in PARTS:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (PROJECT / "Makefile", PROJECT / "pyproject.toml", *PROJECT.glob("requirements*.txt")):
        shutil.copy2(file, folder)
    (folder / "data").symlink_to(PROJECT / "data")
    return folder


@pytest.fixture(scope="module")
def run(clone):
    def run(*command):
        env = {**os.environ, "PYTHONPATH": str(clone), "ROUTESCOPE_HOME": str(clone / "var")}
        return subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture(scope="module")
def written(clone, run):
    python = f"PY={shlex.quote(sys.executable)}"  # -o: the environment that runs this test is there
    done = run("make", "-o", ".venv/.installed", "route", "NAME=my_route", python)
    assert done.returncode == 0, done.stderr
    assert "core/routes/my_route.py" in done.stdout
    return clone / "core" / "routes" / "my_route.py"


def test_the_new_route_is_listed_and_offered(run, written):
    listed = json.loads(run(sys.executable, "-m", "core", "routes", "--json").stdout)["routes"]
    (mine,) = [route for route in listed if route["name"] == "my_route"]
    assert (mine["title"], mine["available"]) == ("My route", True)
    assert [route["name"] for route in listed if route["name"] != "my_route"] == list(routes())
    seen = run(sys.executable, "-m", "tests.offered")
    assert seen.returncode == 0, seen.stderr
    assert "my_route" in seen.stdout.splitlines()
    assert "My route" in seen.stdout


def test_its_test_passes_at_once_and_fails_when_the_route_breaks(run, written):
    def tested():
        test = ("pytest", "-p", "no:cacheprovider", "tests/unit/routes/test_my_route.py")
        return run(sys.executable, "-m", *test)

    assert (done := tested()).returncode == 0, done.stdout
    right = written.read_text()
    written.write_text(right.replace(", k)", ", 59)"))
    assert (done := tested()).returncode == 1, done.stdout
    written.write_text(right)


def test_it_keeps_the_contract_of_all_routes_and_the_style(run, written):
    test = ("pytest", "-p", "no:cacheprovider", "-k", "my_route", "tests/unit/routes/test_routes.py")
    done = run(sys.executable, "-m", *test)
    assert done.returncode == 0, done.stdout
    files = ("core/routes/my_route.py", "tests/unit/routes/test_my_route.py")
    for check in (("check",), ("format", "--check")):
        done = run(sys.executable, "-m", "ruff", *check, *files)
        assert done.returncode == 0, done.stdout


def test_neither_file_is_written_where_one_is_there(tmp_path):
    (tmp_path / "test_mine.py").write_text("")
    with pytest.raises(FileExistsError, match=r"test_mine\.py exists already"):
        create("mine", tmp_path, tmp_path)
    assert not (tmp_path / "mine.py").exists()


@pytest.mark.parametrize(
    "name", ["", "My_route", "my-route", "1st", "a b", "_x", "x_", "../x", "class", "all"]
)
def test_other_names_are_refused_in_one_line(tmp_path, name):
    with pytest.raises(ValueError, match="is not a name for a route: use lower-case letters"):
        create(name, tmp_path, tmp_path)
    with pytest.raises(ValueError, match="too long"):
        create("a" * 41, tmp_path, tmp_path)
    assert not list(tmp_path.iterdir())
