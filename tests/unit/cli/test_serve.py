"""`serve`: what it listens on, which host names it answers to, and how it ends."""

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.cli import main, serve
from core.domain import settings as settings_module
from core.domain.program import PROJECT


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "elsewhere.example"], "--host 'elsewhere.example': give an IPv4 address or localhost"),
        (["--host", "::1"], "--host '::1': give an IPv4 address or localhost"),
        (["--host", "0.0.0.0"], "--host 0.0.0.0: without a login"),
        (["--host", "192.0.2.1", "--port", "0"], "--host 192.0.2.1: without a login"),
        (["--name", "http://x"], "--name 'http://x': give a host name without scheme, port or *"),
        (["--name", "*"], "--name '*'"),
        (["--port", "99999"], "99999 is not in the range"),
    ],
)
def test_what_cannot_be_served_is_one_error(arguments, told, capsys):
    assert main(["serve", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_with_a_login_it_listens_elsewhere(monkeypatch, capsys):
    """As far as the machine has that address; half a login is none."""
    login = {
        "oidc_url": "https://id.example",
        "oidc_client_id": "us",
        "oidc_client_secret": "secret",
        "cookie_secret": "c" * 32,
        "public_url": "https://scope.example",
    }
    monkeypatch.setattr(settings_module, "current", lambda: settings_module.load(**login))
    assert main(["serve", "--host", "192.0.2.1", "--port", "0"]) == 2
    assert "cannot listen on 192.0.2.1:0" in capsys.readouterr().err
    login["public_url"], proxy = "", {"proxy_header": "X-Forwarded-Email"}
    monkeypatch.setattr(settings_module, "current", lambda: settings_module.load(**proxy))
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "say by which host name it is reached: --name HOSTNAME" in capsys.readouterr().err
    login |= {"public_url": "https://scope.example", "cookie_secret": ""}
    monkeypatch.setattr(settings_module, "current", lambda: settings_module.load(**login))
    assert main(["serve", "--port", "0"]) == 2
    assert "setting cookie_secret: a login by oidc_url needs it" in capsys.readouterr().err


def test_a_port_in_use_is_told(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    assert (
        f"cannot listen on 127.0.0.1:{port}: Address already in use; give another" in capsys.readouterr().err
    )


def test_it_answers_to_loopback_and_to_what_is_named():
    assert serve._names("127.0.0.1", []) == ["localhost", "127.0.0.1"]
    assert serve._names("10.0.0.5", []) == ["localhost", "127.0.0.1", "10.0.0.5"]
    assert serve._names("0.0.0.0", ["box.example"]) == ["localhost", "127.0.0.1", "box.example"]


CTRL_C_IGNORED = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}


@pytest.mark.process
@pytest.mark.parametrize("started", [{}, CTRL_C_IGNORED], ids=["as here", "by a shell, in the background"])
def test_it_says_its_address_once_it_answers_and_ends_at_ctrl_c(tmp_path, started):
    """From a folder with files of its own that have the names of ours."""
    for name in ("core", "app", "streamlit"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is not ours')\n")
    with served(tmp_path, stderr=subprocess.PIPE, **started) as (server, address):
        with urllib.request.urlopen(address, timeout=20) as page:
            assert page.headers["Content-Security-Policy"].startswith("default-src 'self'")
        foreign = urllib.request.Request(address, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(foreign, timeout=20)
        port = int(address.rpartition(":")[2])
        (child,) = _children(server.pid)
        server.send_signal(signal.SIGINT)
        assert server.wait(120) == 0
        assert server.stderr.read() == ""
        assert not Path(f"/proc/{child}").exists()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.process
def test_a_closed_terminal_ends_it_with_its_child(tmp_path):
    with served(tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as (server, _):
        (child,) = _children(server.pid)
        server.send_signal(signal.SIGHUP)
        assert server.wait(120) == 0
        assert not Path(f"/proc/{child}").exists()


def test_nohup_keeps_it_through_a_closed_terminal(restored_signals):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert set(serve._end_on_signals()) == {signal.SIGINT, signal.SIGTERM}
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.fixture
def restored_signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@contextmanager
def served(folder, **started):
    """Start `serve` in `folder`; yield its process and its address once it answers."""
    code = "import sys; from core.cli import main; sys.exit(main(['serve', '--port', '0']))"
    environment = {"ROUTESCOPE_HOME": str(folder / "home"), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, **started
    ) as server:
        try:
            told = server.stdout.readline().strip()
            assert told.startswith("RouteScope: http://localhost:")
            yield server, told.removeprefix("RouteScope: ")
        finally:
            server.kill()


def _children(pid):
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if found := Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
            return found
        time.sleep(0.1)
    return []


@pytest.mark.process
@pytest.mark.trust
def test_a_killed_serve_frees_its_port_within_five_seconds(tmp_path):
    with served(tmp_path) as (server, address):
        port = int(address.rpartition(":")[2])
        (child,) = _children(server.pid)
        server.kill()
        killed = time.monotonic()
        server.wait()
        with socket.create_connection(("127.0.0.1", port), 5) as visitor:  # a page that stays open
            visitor.sendall(b"GET /_stcore/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while Path(f"/proc/{child}").exists():
                assert time.monotonic() - killed < 5
                time.sleep(0.05)
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
