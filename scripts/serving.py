"""The dashboard on a free port, for what measures, draws or tests it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from core.domain.settings import PROJECT

START_S = 60.0
QUIET = {
    "ROUTESCOPE_FIRST_START": "off",
    "FORWARDED_ALLOW_IPS": "",
}  # nothing goes on beside what is looked at, unless that is wanted


@contextmanager
def served(
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
    port: int = 0,
    app: Path = PROJECT / "app.py",
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Its address and its process. `log` gets what it writes, `environment` is added to this process's. A
    `port` of 0 is a free one. `app` is what is served, the dashboard unless said.

    Raises RuntimeError where it does not answer within START_S.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        port = probe.getsockname()[1]
    with (log or Path(os.devnull)).open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port)],
            cwd=PROJECT,
            env={**os.environ, **QUIET, **(environment or {})},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(server, f"http://127.0.0.1:{port}/_stcore/health", log)
        yield f"http://localhost:{port}", server
    finally:
        server.terminate()
        server.wait(30)


def _wait(server: subprocess.Popen[bytes], address: str, log: Path | None) -> None:
    end = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    told = log.read_text(encoding="utf-8", errors="replace")[-4000:] if log else ""
    raise RuntimeError(f"the dashboard does not answer at {address}: {told}")
