"""The embedded model server: llama.cpp in a process of its own, on loopback, which ends itself when unused.

Run by `launch` as `python -m core.backends.llm.server JSON`: an `EmbeddedServer`, and the file of its state.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from core.backends.llm import launch as states
from core.backends.llm.fetch import verified
from core.backends.llm.launch import ServerState
from core.domain import system

log = logging.getLogger(__name__)
CHECK_S = 5.0  # reading the counters more than once a second would keep llama.cpp from seeing callers hang up
WARNINGS = 2  # llama.cpp's log level: from "info" on it writes several lines a call


def threads() -> int:
    """Cores to compute with: all of one or two, else all but one, so that the pages stay quick.

    Measured on 2 cores: 2 threads are 1.9 times as fast as 1 on prompts and 1.3 times on generation.
    """
    cores = system.cores()
    return cores if cores <= 2 else cores - 1


def parameters(options: SimpleNamespace, key: str) -> Any:
    """llama.cpp's settings.

    One slot: on 2 cores four are no faster (grading six passages takes 4.6 to 9.7 s against 4.8), lose the
    common prefix to whichever slot is free, and let other calls in the batch change a result's last digits.
    """
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(options.model)
    wanted.model_alias = {options.name}
    wanted.n_ctx = options.context
    wanted.n_parallel = 1
    wanted.n_gpu_layers = 0
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads()
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0  # a free one
    wanted.api_keys = [key]
    wanted.cors_origins = "http://127.0.0.1"
    # Keeping earlier prompts' states in memory mixes them up: this build then answers a rewriting prompt with
    # words of the grading prompt before it. The slot's own common prefix is reused all the same.
    wanted.cache_ram_mib = 0
    wanted.endpoint_metrics = True
    wanted.endpoint_slots = False  # it would show prompts
    wanted.ui = False
    wanted.verbosity = WARNINGS
    return wanted


def counters(metrics: str) -> tuple[bool, tuple[str, ...]]:
    """Parse the server's metrics: whether a call is running, and the totals that every call changes."""
    values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line and not line.startswith("#"))
    busy = any(float(values.get(f"llamacpp:requests_{kind}", 0)) for kind in ("processing", "deferred"))
    totals = ("prompt_tokens_total", "prompt_tokens_cached_total", "tokens_predicted_total")
    return busy, tuple(values.get(f"llamacpp:{name}", "") for name in totals)


def serve(options: SimpleNamespace) -> int:
    """Load the model, publish the address, and serve until unused, stopped, or no longer named by the state
    file.
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    me = states.ours()
    states.write(options.state, me)
    try:
        if options.sha256 and not verified(options.model, options.sha256):
            raise ValueError(f"its sha256 is not the recorded one; delete it and pull {options.name} again")
        me = me.enter("loading")
        states.write(options.state, me)
        key = secrets.token_urlsafe(24)
        import xllamacpp

        server = xllamacpp.Server(parameters(options, key))
    except Exception as error:  # noqa: BLE001 - whatever the native library raises is told to who waits
        problem = f"llama.cpp cannot serve {options.model}: {error}"
        states.write(options.state, me.enter("failed", detail=problem))
        return 1
    me = me.enter("ready", url=server.listening_address, key=key)
    states.write(options.state, me)
    _watch(server, options, me, stop)
    return 0


def _watch(server: Any, options: SimpleNamespace, me: ServerState, stop: threading.Event) -> None:
    used, before = time.monotonic(), counters(server.handle_metrics())[1]
    pause = min(CHECK_S, max(1.0, options.idle_minutes * 60 / 4))
    while not stop.wait(pause):
        busy, totals = counters(server.handle_metrics())
        if busy or totals != before:
            used, before = time.monotonic(), totals
        if time.monotonic() - used > options.idle_minutes * 60:
            log.warning("stopping after %s minutes unused", options.idle_minutes)
            break
        if states.read(options.state).pid != me.pid:
            log.warning("stopping: the state file no longer names this server")
            return
    if states.read(options.state).pid == me.pid:
        options.state.unlink(missing_ok=True)


def main() -> int:
    """Serve as the command line says."""
    given = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.WARNING)
    return serve(SimpleNamespace(**{**given, "model": Path(given["model"]), "state": Path(given["state"])}))


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # the native destructors wait for a call under way; nothing of value is left to save
