"""The code that runs in a worker: a function of RouteScope by its name, over JSON, and nothing else."""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from core.domain import people
from core.domain.errors import BadInput, Unavailable
from core.domain.machine import host, machine
from core.domain.program import build
from core.domain.settings import Settings, load
from core.domain.system import hide_environment

TOKENS = 8  # bytes of their number before an answer
FOLDERS = ("home", "models_dir")  # which a worker of the same machine shares


def work(header: str, function: str, payload: str, behalf: str) -> bytes:
    """Run the function "core.module:name" on a JSON payload, under the client's settings and on behalf of the
    person in `behalf` (see `on_behalf`). The answer is preceded by the person's model tokens it used, 8
    bytes, little-endian.

    It is the only function sent, and everything sent with it is text.
    """
    about = json.loads(header)
    if about["build"] != build():
        raise BadInput(other_build(build(), about["build"]))
    module, _, name = function.partition(":")
    if not module.startswith("core."):
        raise BadInput(f"{function!r} is no function of RouteScope")
    hide_environment()
    who = json.loads(behalf)
    person = people.Person(who["account"], who["role"])
    _tally.told(person.account, who["spent"])
    people.keep_in(_tally)
    with people.acting(person):
        result = getattr(import_module(module), name)(settings_of(header), json.loads(payload))
    content = result if isinstance(result, bytes) else json.dumps(result).encode()
    return _tally.take(person.account).to_bytes(TOKENS, "little") + content


def on_behalf() -> str:
    """Describe the current person and their tokens of today, for a worker."""
    person = people.current()
    return json.dumps(
        {"account": person.account, "role": person.role, "spent": people.spent(person)}, sort_keys=True
    )


def settle(answer: bytes, behalf: str) -> bytes:
    """Count the tokens of an answer of `work` for its person, and return its content."""
    who = json.loads(behalf)
    tokens = int.from_bytes(answer[:TOKENS], "little")
    people.spend(tokens, people.Person(who["account"], who["role"]))
    return answer[TOKENS:]


class _Tally:
    """The tokens used in this worker that are not reported yet, as the database is elsewhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: dict[str, int] = {}
        self._new: Counter[str] = Counter()
        self._reserved: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def told(self, who: str, spent: int) -> None:
        """Store the database's count for `who`."""
        with self._lock:
            self._before[who] = spent

    def take(self, who: str) -> int:
        """Return the new tokens of `who`, for the client to count: of this task, of parallel tasks of the
        same person, and of an earlier one that failed.
        """
        with self._lock:
            return self._new.pop(who, 0)

    def reserve(self, who: str, tokens: int, limit: int) -> tuple[str, int]:
        """Reserve tokens among the calls of this worker."""
        with self._lock:
            used, held = self._before.get(who, 0) + self._new[who], sum(self._reserved[who].values())
            if used >= limit or (held and used + held + tokens > limit):
                return "", used
            self._reserved[who][id := secrets.token_hex(8)] = tokens
            return id, used

    def settle(self, id: str, who: str, tokens: int) -> None:
        """Count what a call used instead of its reservation."""
        with self._lock:
            self._reserved[who].pop(id, None)
            self._new[who] += tokens

    def spend(self, who: str, tokens: int) -> None:
        """Count it here until it is taken."""
        with self._lock:
            self._new[who] += tokens

    def spent(self, who: str) -> int:
        """Of today, as far as it is known here."""
        with self._lock:
            return self._before.get(who, 0) + self._new[who]

    def record(self, who: str, deed: str, about: str) -> None:
        """Raise Unavailable: a worker does nothing that is recorded."""
        raise Unavailable(f"{who}: {deed} {about}: a worker has no database to record that in")

    def maker(self, _deed: str, _about: str) -> str:
        """Not known here."""
        return ""


_tally = _Tally()


def other_build(theirs: str, ours: str) -> str:
    """Describe a worker that runs other code."""
    return f"it runs RouteScope {theirs}, and {ours} asks: install the same version there"


@lru_cache(maxsize=4)
def settings_of(header: str) -> Settings:
    """Load the client's settings; folders, keys and certificates are this worker's own."""
    given: Mapping[str, Any] = json.loads(header)["settings"]
    own = {name: Path(value) if name in FOLDERS else value for name, value in given.items()}
    return load(**own)


def facts(header: str) -> dict[str, Any]:
    """Describe this worker's program and machine, and its folder of corpora."""
    known = {"build": build(), "host": host(), "machine": machine(), "home": "", "error": ""}
    try:
        known["home"] = str(settings_of(header).home)
    except BadInput as error:
        known["error"] = str(error)
    return known


def nothing(_settings: Settings, _payload: Any) -> None:
    """Do nothing, for measuring the cost of a task."""


def watch() -> Callable[[], bool]:
    """Return a function that reports, in any thread, whether the client no longer wants this thread's task.
    It reads the worker's own record: a running task cannot be ended from outside.
    """
    from distributed.worker import get_worker, thread_state

    tasks, key = get_worker().state.tasks, thread_state.key

    def stopped() -> bool:
        task = tasks.get(key)
        return task is None or task.state in ("cancelled", "resumed")

    return stopped
