"""A scheduler and workers of this machine, in processes of their own that end with who started them.

Started as `python -m core.backends.workers.local`: reads one line of JSON from stdin, writes one to stdout,
and ends when stdin does. It listens on loopback alone, under a certificate made for this start, which others
who use this machine do not have.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.backends.pipes import LinePipes, ProcessGone
from core.domain.errors import Unavailable
from core.domain.program import PROJECT
from core.domain.system import hide_environment

if TYPE_CHECKING:
    from distributed import Nanny
    from distributed.security import Security

LOOPBACK = "127.0.0.1"
START_S = 60.0
CLIENT = ("tls_ca_file", "tls_client_cert", "tls_client_key")
LOG = "workers.log"
MAX_BYTES = 1 << 20  # of the address and the certificates
LOG_BYTES = 1_000_000  # after which the log is started again
QUIET: dict[str, Any] = {
    "distributed.worker.memory.terminate": False,
    "distributed.admin.tick.limit": "60s",
    "distributed.scheduler.allowed-failures": 3,
    "distributed.diagnostics.nvml": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class Local:
    """The process with the scheduler and the supervisors of the workers, which starts killed ones again."""

    def __init__(self, workers: int, home: Path) -> None:
        """Start the scheduler and wait until it listens. Raises Unavailable if it does not."""
        from distributed.security import Security

        self._log = home / "cache" / LOG
        self._log.parent.mkdir(parents=True, exist_ok=True)
        paths = filter(None, (str(PROJECT), os.environ.get("PYTHONPATH")))
        env = {**os.environ, "ROUTESCOPE_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "core.backends.workers.local"]
        large = self._log.exists() and self._log.stat().st_size > LOG_BYTES
        with self._log.open("wb" if large else "ab") as log:
            self._pipes = LinePipes(command, stderr=log, env=env, cwd=PROJECT)
        failed = Unavailable(f"the workers of this machine did not start; {self._log} says why")
        try:
            self._pipes.send(json.dumps({"workers": workers}).encode() + b"\n")
            told = json.loads(self._pipes.line(START_S, MAX_BYTES, failed, lambda: None))
        except (ProcessGone, TimeoutError, Unavailable):
            self._pipes.kill()
            raise failed from None
        self.address: str = told["address"]
        self.security: Security = Security(require_encryption=True, **told["security"])

    def close(self) -> None:
        """End it with its workers."""
        self._pipes.close()
        with suppress(subprocess.TimeoutExpired):
            self._pipes.process.wait(10)
        self._pipes.kill()


@asynccontextmanager
async def nannies(scheduler: str, count: int, name: str, **options: Any) -> AsyncIterator[list[Nanny]]:
    """Run `count` workers for a scheduler, each in a process that is started again when it is killed."""
    from distributed import Nanny

    with tempfile.TemporaryDirectory(prefix="routescope-workers-") as scratch:
        started = [
            Nanny(
                scheduler,
                nthreads=1,
                name=f"{name} {n + 1}",
                memory_limit=None,
                local_directory=scratch,
                **options,
            )
            for n in range(count)
        ]
        try:
            await asyncio.gather(*started)
            yield started
        finally:
            await asyncio.gather(*(one.close(timeout=3) for one in started), return_exceptions=True)


async def _serve(workers: int) -> None:
    import dask
    from distributed import Scheduler
    from distributed.security import Security

    dask.config.set(QUIET)
    secured = Security.temporary()
    listening: dict[str, Any] = {
        "protocol": "tls",
        "host": LOOPBACK,
        "dashboard_address": f"{LOOPBACK}:0",
        "security": secured,
    }
    async with Scheduler(port=0, dashboard=False, **listening) as scheduler:
        shown = {name: getattr(secured, name) for name in CLIENT}
        sys.stdout.write(json.dumps({"address": scheduler.address, "security": shown}) + "\n")
        sys.stdout.flush()
        os.dup2(2, 1)  # what a library prints must not fill a pipe that nobody reads
        async with nannies(scheduler.address, workers, "worker", **listening):
            await asyncio.to_thread(sys.stdin.read)  # until who started it closes it, or is no more


if __name__ == "__main__":
    hide_environment()
    asyncio.run(_serve(json.loads(sys.stdin.readline())["workers"]))
