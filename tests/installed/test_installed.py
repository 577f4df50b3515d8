"""The program as others install it: a wheel, an environment of its own, an empty working directory."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from core.domain.program import PROJECT
from core.routes.registry import routes
from ui.app.data import table

pytestmark = [pytest.mark.installed, pytest.mark.timeout(900)]

LONG_S = 600  # indexing takes ten seconds of a processor, which others may have
ASKED = "How does an idempotency key make a POST request safe to retry?"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this checkout by the backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, timeout=LONG_S)
    (made,) = folder.iterdir()
    return made


class Installed:
    """The environment: its folder, the packages in it, and what runs there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "env", folder / "env" / "bin"
        (self.packages,) = self.folder.glob("lib/python*/site-packages")
        self.home, self.empty = folder / "user", folder / "empty"
        self.home.mkdir()
        self.empty.mkdir()
        self.environment = {"HOME": str(self.home), "PATH": f"{self.bin}:{os.environ['PATH']}"}

    def __call__(self, *command: str, code: int = 0) -> str:
        """What a command writes to stdout, run from the empty folder; it must end with `code`."""
        done = subprocess.run(
            command, cwd=self.empty, env=self.environment, capture_output=True, text=True, timeout=LONG_S
        )
        assert done.returncode == code, done.stderr[-3000:]
        return done.stdout if code == 0 else done.stderr

    def files(self) -> dict[str, tuple[int, int]]:
        """The files of the package with their sizes and times; what Python compiles does not count."""
        return {
            str(path.relative_to(self.packages)): (path.stat().st_size, path.stat().st_mtime_ns)
            for path in (self.packages / "routescope").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel in an environment of its own that borrows the libraries of this one."""
    folder = tmp_path_factory.mktemp("installed")
    python = folder / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=LONG_S)
    made = Installed(folder)
    borrowed = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (made.packages / "zz_borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return made


@pytest.fixture(scope="module")
def indexed(installed):
    """The same with the smaller built-in corpus indexed."""
    before = installed.files()
    installed("routescope", "index", "web")
    assert installed.files() == before
    return installed


def test_the_wheel_holds_what_the_checkout_holds_in_one_folder(wheel):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "core", "data", "pages", "ui", ".streamlit", "app.py", "requirements.txt"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("this is no git checkout")
    wanted = {
        f"routescope/{name}" for name in listed.stdout.split("\0") if name and (PROJECT / name).exists()
    }
    with zipfile.ZipFile(wheel) as held:
        names = set(held.namelist())
        requirements = held.read("routescope/requirements-light.txt").decode()
        (metadata,) = [held.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    assert wanted <= names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"routescope", "routescope.pth"}
    pinned = {line.lower().replace("_", "-") for line in requirements.splitlines() if "==" in line}
    declared = {
        line.removeprefix("Requires-Dist: ").lower().replace("_", "-")
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist") and "extra ==" not in line
    }
    assert {line for line in pinned if not line.startswith("#")} == declared
    assert not any(line.startswith("torch") for line in declared)
    assert any("torch==" in line and "extra ==" in line and "full" in line for line in metadata.splitlines())


def test_every_subcommand_is_there_under_the_name_of_the_program(installed):
    told = installed("routescope", "--help")
    assert told.startswith("Usage: routescope ")
    here = subprocess.run(
        [sys.executable, "-m", "core", "--help"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"^  (\w+) ", told, re.MULTILINE) == re.findall(r"^  (\w+) ", here, re.MULTILINE)
    assert installed("python", "-m", "routescope", "--help") == told
    listed = json.loads(installed("routescope", "routes", "--json"))["routes"]
    assert {one["name"] for one in listed} == set(routes())


def test_it_keeps_its_data_in_the_users_folder_and_says_so(installed):
    told = json.loads(installed("routescope", "doctor", "--quick", "--json"))
    checks = {check["name"]: check for check in told["checks"]}
    home = installed.home / ".local" / "share" / "routescope"
    assert str(home) in checks["home"]["detail"]
    assert f"installed in {installed.packages / 'routescope'}" in checks["program"]["detail"]
    assert checks["corpus support"]["fix"] == "run: routescope index support"
    assert "browser for tests" not in checks  # there are none to run
    assert list(installed.empty.iterdir()) == []
    moved = {**installed.environment, "ROUTESCOPE_HOME": str(installed.home / "other")}
    command = ["routescope", "doctor", "--quick", "--json"]
    done = subprocess.run(
        command, cwd=installed.empty, env=moved, capture_output=True, text=True, timeout=LONG_S
    )
    assert str(installed.home / "other") in done.stdout


def test_a_corpus_that_is_not_indexed_is_told_with_the_command_that_works(installed):
    told = installed("routescope", "ask", "x", "--corpus", "pydocs", "--routes", "bm25", code=1)
    assert "run routescope index pydocs" in told


def test_a_question_is_asked_over_a_built_in_corpus(indexed):
    found = json.loads(indexed("routescope", "ask", ASKED, "--corpus", "web", "--routes", "bm25", "--json"))
    (result,) = found["results"]
    assert result["status"] == "ok"
    assert "idempoten" in result["hits"][0]["text"].lower()


def test_the_demo_measures_routes_and_its_gate_fails(indexed):
    assert indexed("routescope", "--version").startswith("RouteScope 0.1.")
    told = indexed("routescope", "demo")
    assert "The gate fails" in told
    assert list(indexed.empty.iterdir()) == []


def test_from_python_the_promised_line_works_in_any_folder(indexed):
    code = (
        "from core.api import compare, evaluate, gate\n"
        f"found = compare({ASKED!r}, 'web', ['bm25'], build=False)\n"
        "import core; print(core.__file__); print(found.results[0].hits[0].passage.id)"
    )
    where, first = indexed("python", "-c", code).splitlines()
    assert Path(where).is_relative_to(indexed.packages / "routescope")
    assert first


def test_another_package_named_core_is_neither_overwritten_nor_in_the_way(installed):
    """Theirs is the one that Python finds; the command finds its own."""
    theirs = installed.packages / "core"
    theirs.mkdir()
    try:
        (theirs / "__init__.py").write_text("whose = 'theirs'\n")
        assert installed("python", "-c", "import core; print(core.whose)") == "theirs\n"
        assert "bm25" in installed("routescope", "routes")
        assert "bm25" in installed("python", "-m", "routescope", "routes")
    finally:
        (theirs / "__init__.py").unlink()
        for left in (*theirs.glob("__pycache__/*"), *theirs.glob("__pycache__"), theirs):
            left.rmdir() if left.is_dir() else left.unlink()


def test_an_agent_asks_over_stdin_and_stdout(indexed):
    command = StdioServerParameters(
        command=str(indexed.bin / "routescope"), args=["mcp"], env=indexed.environment, cwd=indexed.empty
    )

    async def talk():
        async with Client(stdio_client(command)) as client:
            asked = await client.call_tool("ask", {"question": ASKED, "corpus": "web", "routes": ["bm25"]})
            run = asked.structured_content["run"]
            passage = asked.structured_content["routes"][0]["hits"][0]["untrusted_passage"]
            return passage, await client.call_tool("why", {"run": run, "passage": passage})

    passage, told = anyio.run(talk)
    assert not told.is_error
    assert f"[{passage}]" in told.structured_content["untrusted_explanation"]
    assert "Found: BM25 at rank 1" in told.structured_content["untrusted_explanation"]


def test_the_dashboard_is_served_with_its_pages_and_ends_at_ctrl_c(indexed):
    before = indexed.files()
    with subprocess.Popen(
        ["routescope", "serve", "--port", "0", "--json"],
        executable=str(indexed.bin / "routescope"),
        cwd=indexed.empty,
        env=indexed.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            told = "".join(iter(server.stdout.readline, "}\n")) + "}"
            address = json.loads(told)["url"]
            with urllib.request.urlopen(address, timeout=30) as page:
                assert "frame-ancestors 'self'" in page.headers["Content-Security-Policy"]
            names = _pages(address)
            server.send_signal(signal.SIGINT)
            assert server.wait(40) == 0
        finally:
            server.kill()
    shown = [page["title"] for page in table("pages")["page"]]
    assert len(shown) > 10
    assert [name for name in shown if name not in names] == []
    assert indexed.files() == before
    assert list(indexed.empty.iterdir()) == []


def _pages(address: str) -> str:
    """What a browser shows of the first page: its navigation names every page."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import FLAGS, chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            page = browser.new_page()
            page.goto(address)
            page.get_by_role("link", name="Help").wait_for(timeout=60_000)
            page.get_by_role("textbox").first.wait_for(timeout=60_000)
            assert page.get_by_test_id("stException").count() == 0
            return page.get_by_test_id("stSidebar").inner_text()
        finally:
            browser.close()
