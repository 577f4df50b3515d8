"""`serve`: the dashboard, with this program's own configuration; `mcp`: tools for agents; `worker`."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Sequence
from typing import Any

from core.cli.commands import command
from core.cli.common import emit, note
from core.domain import people, process_setup, sign_in, system
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.program import PROJECT
from core.evaluation.spec import option

EVERYWHERE = "0.0.0.0"
START_S = 120.0  # a first start compiles every module, on a busy machine too
LOOK_S = 0.1
END_S = 15.0  # for what is under way to be stored


@command("serve")
def serve_(
    port: int = option(8501, "Port to listen on; 0 takes a free one.", "N", most=65535),
    host: str = option(
        "127.0.0.1", "IPv4 address to listen on; another than this machine's needs a login.", "ADDRESS"
    ),
    names: Sequence[str] = option(
        (), "Also answer to this host name, for example a proxy's; repeatable.", "HOSTNAME", flags="--name"
    ),
) -> int:
    """Open the dashboard. Its address is printed once it answers; Ctrl-C ends it."""
    try:
        address = ipaddress.IPv4Address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise BadInput(f"--host {host!r}: give an IPv4 address or localhost") from None
    now = settings_module.current()
    sign_in.check(now, {sign_in.FORWARDED: ""})
    if not now.login and not address.is_loopback:
        raise BadInput(f"--host {host}: {sign_in.NO_LOGIN}")
    answering = _names(host, [*names, *filter(None, [sign_in.host(now)])])
    port = _free(host, port)
    options = [("address", host), ("port", str(port)), ("headless", "true")]
    options += [("allowedHosts", name) for name in answering]
    # -P: not what lies around
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(PROJECT / "app.py")]
    command += [part for name, value in options for part in (f"--server.{name}", value)]
    before = _end_on_signals()
    system.conceal()
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # the system closes this process's end however it ends
        stdout=subprocess.DEVNULL,  # it names its address before it answers there
        # No header of a request changes whose it is.
        env={**os.environ, sign_in.FORWARDED: "", process_setup.PARENT: "stdin"},
        **system.OWN_SESSION,  # Ctrl-C is for this process, which ends it
    )
    try:
        _wait(child, host, port)
        url = f"http://{'localhost' if host in (EVERYWHERE, '127.0.0.1') else host}:{port}"
        emit({"url": url, "pid": child.pid}, lambda: f"RouteScope: {url}")
        sys.stdout.flush()
        code = child.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _end(child)
        for number, handler in before.items():
            signal.signal(number, handler)
    raise Unavailable(f"the dashboard ended with exit code {code}")


def _end_on_signals() -> dict[signal.Signals, Any]:
    """Raise KeyboardInterrupt on the signals that ask a program to end; return the handlers they had.

    A shell starts background commands with SIGINT ignored: servers listen to it nevertheless, and so does the
    dashboard's process. An ignored SIGHUP stays ignored, because `nohup` asks for exactly that.
    """
    return {
        number: signal.signal(number, signal.default_int_handler)
        for number in system.ENDING
        if number.name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN
    }


def _names(host: str, names: Sequence[str]) -> list[str]:
    """Return the host names to answer to. Raises BadInput for an invalid one."""
    if host == EVERYWHERE and not names:
        raise BadInput(
            f"--host {host} listens on every network of this machine; say by which host name it is reached: "
            f"--name HOSTNAME"
        )
    for name in names:
        if not name.strip() or set(name) & set("/*: "):
            raise BadInput(f"--name {name!r}: give a host name without scheme, port or *")
    config = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    own = [] if host == EVERYWHERE else [host]
    return list(dict.fromkeys([*config["server"]["allowedHosts"], *own, *names]))


def _free(host: str, port: int) -> int:
    """Return the port, or a free one for 0. Raises BadInput if it cannot be used."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(
                f"cannot listen on {host}:{port}: {error.strerror or error}; give another --port or --host"
            ) from None
        return int(probe.getsockname()[1])


def _wait(child: subprocess.Popen[bytes], host: str, port: int) -> None:
    """Wait until the server responds. Raises Unavailable if it ends or times out."""
    there = "127.0.0.1" if host == EVERYWHERE else host
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if child.poll() is not None:
            raise Unavailable(f"the dashboard did not start: exit code {child.returncode}")
        try:
            direct.open(f"http://{there}:{port}/_stcore/health", timeout=5).close()
        except OSError:
            time.sleep(LOOK_S)
        else:
            return
    raise Unavailable(f"the dashboard did not answer within {START_S:.0f} s")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End it, gently at first."""
    if child.poll() is not None:
        return
    if system.WINDOWS and child.stdin is not None:
        child.stdin.close()  # see `process_setup.end_with_parent`
    else:
        child.terminate()  # not SIGINT, at which Streamlit's command writes "Aborted!"
    try:
        child.wait(END_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C waits for nothing
        child.kill()
        child.wait()


@command("mcp")
def mcp_(
    token_for: str = option(
        "",
        "Print a new token for an account's agents, and the lines of the settings file that admit it.",
        "ACCOUNT",
    ),
) -> int:
    """Serve the tools ask, why and evaluations to a coding agent (Model Context Protocol).

    It speaks over stdin and stdout, opens no port, and ends when the agent closes stdin. The tools read what
    is stored here; ask also stores its run. docs/using.md says how to add it to an agent. A server that
    `serve` started has the same tools at /mcp, over HTTP; on a team's server an agent needs a token.
    """
    if token_for:
        account = people.account(token_for)
        token, digest = sign_in.new_token()
        emit(
            {"token": token, "account": account, "sha256": digest},
            lambda: f'Authorization: Bearer {token}\n\n[team.tokens]\n{digest} = "{account}"',
        )
        return 0
    from core.api.mcp_server import server

    server().run("stdio")
    return 0


@command("worker")
def worker_(
    scheduler: str,
    count: int = option(
        1, "Worker processes; one for every two cores is a good start.", "N", flags="--workers", least=None
    ),
) -> None:
    """Work for the Dask scheduler at tcp://HOST:PORT or tls://HOST:PORT, until interrupted.

    The corpora in this machine's home folder are searched, so they must equal those of the evaluating
    machine. A worker that is killed is started again, and a scheduler that goes away is waited for. Anyone
    who can reach the scheduler can run code here: read docs/server.md first.
    """
    from core.backends.workers.place import INSTALL, MAX_WORKERS, checked, installed
    from core.domain import settings

    address = checked(scheduler)
    if not 1 <= count <= MAX_WORKERS:
        raise BadInput(f"--workers {count}; give 1 to {MAX_WORKERS}")
    if not installed():
        raise Unavailable(f"Dask is not installed; run: {INSTALL}")
    from core.backends.workers.serve import serve

    note(f"{count} {'worker' if count == 1 else 'workers'} for {address}; Ctrl-C ends it")
    serve(address, count, settings.current())
