"""What runs in a worker: a function of RouteScope by its name, over JSON, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from core.domain.errors import BadInput
from core.domain.machine import host, machine
from core.domain.program import build
from core.domain.settings import Settings, load

FOLDERS = ("home", "models_dir")  # which a worker of the same machine shares


def work(header: str, function: str, payload: str) -> bytes:
    """What the function "core.module:name" gives for a JSON payload, under the settings of who asks.

    The only function that is shipped, and all that is shipped with it is text.
    """
    about = json.loads(header)
    if about["build"] != build():
        raise BadInput(other_build(build(), about["build"]))
    module, _, name = function.partition(":")
    if not module.startswith("core."):
        raise BadInput(f"{function!r} is no function of RouteScope")
    result = getattr(import_module(module), name)(settings_of(header), json.loads(payload))
    return result if isinstance(result, bytes) else json.dumps(result).encode()


def other_build(theirs: str, ours: str) -> str:
    """What is said of a worker that runs other code."""
    return f"it runs RouteScope {theirs}, and {ours} asks: install the same version there"


@lru_cache(maxsize=4)
def settings_of(header: str) -> Settings:
    """The settings of who asks; folders, keys and certificates are this worker's own."""
    given: Mapping[str, Any] = json.loads(header)["settings"]
    own = {name: Path(value) if name in FOLDERS else value for name, value in given.items()}
    return load(**own)


def facts(header: str) -> dict[str, Any]:
    """Which program this worker runs on which machine, and where it looks for corpora."""
    known = {"build": build(), "host": host(), "machine": machine(), "home": "", "error": ""}
    try:
        known["home"] = str(settings_of(header).home)
    except BadInput as error:
        known["error"] = str(error)
    return known


def nothing(_settings: Settings, _payload: Any) -> None:
    """What a task costs by itself, to be measured."""


def watch() -> Callable[[], bool]:
    """What tells, in any thread, whether who asked wants the task of this thread no longer. It reads the
    worker's own record of it: a task that runs cannot be ended from outside.
    """
    from distributed.worker import get_worker, thread_state

    tasks, key = get_worker().state.tasks, thread_state.key

    def stopped() -> bool:
        task = tasks.get(key)
        return task is None or task.state in ("cancelled", "resumed")

    return stopped
