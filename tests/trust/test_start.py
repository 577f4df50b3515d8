"""Nothing is sent anywhere when the program starts, is looked at, or is asked without a remote model."""

import os
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import served

pytestmark = [pytest.mark.trust, pytest.mark.enable_socket]

ROOT = Path(__file__).resolve().parents[2]
WATCH = """
import os, socket, sys

HERE = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname()}

def watch(event, given):
    if event == "socket.connect" or event == "socket.sendto":
        to = given[1][0] if isinstance(given[1], tuple) else ""
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        to = given[0] or ""
    else:
        return
    to = to.decode() if isinstance(to, bytes) else str(to)
    if to not in HERE and not to.startswith("127."):
        with open(os.environ["WATCHED"], "a") as file:
            print(sys.argv[:3], event, to, file=file)

sys.addaudithook(watch)
"""
PAGES = """
from streamlit.testing.v1 import AppTest
ABOUT = ("compare", "why", "steps", "latency", "label", "evaluate", "tune", "release", "sessions")
for page in (*ABOUT, "present", "corpus", "settings", "help"):
    app = AppTest.from_file("pages/frame.py", default_timeout=60)
    app.switch_page(f"{page}.py")
    app.run()
    assert not app.exception, (page, app.exception)
print("drawn")
"""


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A file in which every Python begun from here notes whom it wants to reach beyond this machine."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "watch"))
    monkeypatch.setenv("WATCHED", str(tmp_path / "watched"))
    monkeypatch.setenv("ROUTESCOPE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "watched"


def python(*arguments):
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ.copy(), capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_that_reaches_out_would_be_noticed(watched):
    python("-c", "import socket; s = socket.socket(); s.settimeout(0.01); s.connect_ex(('203.0.113.1', 9))")
    looks = "with contextlib.suppress(OSError): socket.getaddrinfo('a.invalid', 1)"
    python("-c", f"import socket, contextlib\n{looks}")
    assert [line.split()[-1] for line in watched.read_text().splitlines()] == ["203.0.113.1", "a.invalid"]


def test_the_server_and_every_page_start_without_reaching_out(watched, tmp_path):
    with served(tmp_path / "home") as (address, _):
        for path in ("/", "/_stcore/health", "/_stcore/host-config", "/sessions"):
            urllib.request.urlopen(address + path, timeout=20).read()
    assert python("-c", PAGES).strip().endswith("drawn")
    assert not watched.exists(), watched.read_text()


def test_commands_that_need_no_remote_model_reach_out_to_nobody(watched, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Returns\n\nSend it back within 30 days.\n")
    python("-m", "core", "index", str(folder), "--name", "notes")
    asked = ("How long may I send it back?", "--corpus", "notes", "--routes", "bm25,dense", "--json")
    python("-m", "core", "ask", *asked)
    python("-m", "core", "sessions", "list")
    python("-m", "core", "routes")
    assert not watched.exists(), watched.read_text()


def test_what_is_set_by_default_stays_on_this_machine():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["allowedHosts"] == ["localhost", "127.0.0.1"]
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "none"
    assert config["server"]["enableStaticServing"] is False
