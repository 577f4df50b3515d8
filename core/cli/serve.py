"""`serve`: the dashboard, with this program's own configuration, wherever it is started."""

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

import click

from core.cli.common import emit, output_options
from core.domain import process_setup, sign_in
from core.domain import settings as settings_module
from core.domain.errors import BadInput, Unavailable
from core.domain.program import PROJECT

START_S = 120.0  # a first start compiles every module, on a busy machine too
LOOK_S = 0.1
END_S = 15.0  # for what is under way to be stored


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8501,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="IPv4 address to listen on; another than this machine's needs a login.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOSTNAME",
    help="Also answer to this host name, for example a proxy's; repeatable.",
)
@output_options
def serve_(port: int, host: str, names: Sequence[str], as_json: bool) -> int:
    """Open the dashboard. Its address is printed once it answers; Ctrl-C ends it."""
    _check_host(host)
    now = settings_module.current()
    sign_in.check(now, {sign_in.FORWARDED: ""})
    if not now.login and not _loopback(host):
        raise BadInput(f"--host {host}: {sign_in.NO_LOGIN}")
    answering = _names(host, [*names, *filter(None, [sign_in.host(now)])])
    port = _free(host, port)
    command = [
        sys.executable,
        "-P",
        "-m",
        "streamlit",
        "run",
        str(PROJECT / "app.py"),  # -P: not what lies around
        "--server.address",
        host,
        "--server.port",
        str(port),
        "--server.headless",
        "true",
        *(part for name in answering for part in ("--server.allowedHosts", name)),
    ]
    before = _end_on_signals()
    process_setup.conceal()
    watched, _open = os.pipe()  # the system closes this process's end however it ends
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # it names its address before it answers there
        # No header of a request changes whose it is.
        env={**os.environ, sign_in.FORWARDED: "", process_setup.PARENT: str(watched)},
        pass_fds=[watched],
        start_new_session=True,  # Ctrl-C is for this process, which ends it
    )
    os.close(watched)
    try:
        _wait(child, host, port)
        address = f"http://{'localhost' if _everywhere(host) or host == '127.0.0.1' else host}:{port}"
        emit({"url": address, "pid": child.pid}, lambda: f"RouteScope: {address}", as_json=as_json)
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
    """Raise KeyboardInterrupt on SIGINT, SIGTERM and SIGHUP; return the handlers they had.

    A shell starts background commands with SIGINT ignored: servers listen to it nevertheless, and so does the
    dashboard's process. An ignored SIGHUP stays ignored, because `nohup` asks for exactly that.
    """
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)  # a closed terminal: its default would leave the dashboard's process
    return {number: signal.signal(number, signal.default_int_handler) for number in ending}


def _check_host(host: str) -> None:
    """BadInput for an address that cannot be listened on."""
    if host != "localhost":
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise BadInput(f"--host {host!r}: give an IPv4 address or localhost") from None


def _names(host: str, names: Sequence[str]) -> list[str]:
    """Return the host names to answer to. Raises BadInput for an invalid one."""
    if _everywhere(host) and not names:
        raise BadInput(
            f"--host {host} listens on every network of this machine; say by which host name it is reached: "
            f"--name HOSTNAME"
        )
    for name in names:
        if not name.strip() or set(name) & set("/*: "):
            raise BadInput(f"--name {name!r}: give a host name without scheme, port or *")
    config = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    own = [] if _everywhere(host) else [host]
    return list(dict.fromkeys([*config["server"]["allowedHosts"], *own, *names]))


def _everywhere(host: str) -> bool:
    return host == "0.0.0.0"


def _loopback(host: str) -> bool:
    return host == "localhost" or ipaddress.IPv4Address(host).is_loopback


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
    there = "127.0.0.1" if _everywhere(host) else host
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
    child.send_signal(signal.SIGINT)
    try:
        child.wait(END_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C waits for nothing
        child.kill()
        child.wait()
