"""A pool that distributes tasks to the workers of a Dask scheduler and survives the loss of any of them."""

from __future__ import annotations

import json
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import SecretStr

from core.backends.workers import inside
from core.backends.workers.local import Local
from core.backends.workers.place import FILES, WorkPlace, security
from core.domain.errors import Cancelled, RouteScopeError, Unavailable, describe
from core.domain.program import COMMAND, build

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.security import Security

    from core.domain.settings import Settings

log = logging.getLogger(__name__)
K = TypeVar("K")
CONNECT_S = 10.0  # for a first connection
LOST_S = 60.0  # that a scheduler, or a worker, may be away before the work is given up
LOOK_S = 0.1  # between looks at whether to stop
AHEAD = 2  # tasks that each thread of a worker has waiting, so that it never waits for who asks
TRIES = 3  # times that a task is given out that Dask gives up: four workers died of it each time
# Which a worker has of its own.
OWN_SETTINGS = ("home", "models_dir", "external", "corpora", "only_public", "scheduler", *FILES)
TOO_SMALL = (
    "the same task ended several workers, one after another; their memory may be too small. Finished work is"
    " saved, and the same command goes on"
)
GONE = (OSError, RuntimeError, TimeoutError)  # what Dask raises where a connection or its loop is closed
Ended = Callable[[], bool]


class Pool:
    """The workers of a place, connected while it is entered. Of one thread."""

    def __init__(self, place: WorkPlace, settings: Settings, *, ended: Ended = lambda: False) -> None:
        """Connect nothing yet. `ended` is polled while waiting: Cancelled is raised once it returns True."""
        self.place, self._settings, self._ended = place, settings, ended
        self.header = header(place, settings)
        self._local: Local | None = None
        self._client: Client | None = None
        self._threads, self._looked = 0, 0.0
        self._gone = False  # whether the connection was seen to be lost

    def open(self) -> Self:
        """Connect, start the workers of this machine, and check all there are. Raises Unavailable, and
        Cancelled where it was ended meanwhile.
        """
        try:
            self._connect()
        except BaseException:
            self.close()
            raise
        return self

    def each(self, function: str, calls: Iterable[tuple[K, Any]], ended: Ended) -> Iterator[tuple[K, bytes]]:
        """Yield the result of `function`, "core.module:name", for each JSON value of `calls`, with its key,
        in order of completion. Stops early once `ended`. Raises the function's exceptions, and Unavailable if
        no worker is left.

        Calls are submitted a few at a time. Those of a lost worker or scheduler are submitted again.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        fresh = ((key, json.dumps(value), 0) for key, value in calls)
        again: deque[tuple[K, str, int]] = deque()
        given: dict[Future, tuple[K, str, int]] = {}
        finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
        try:
            while not ended():
                try:
                    if not self._ready(ended):
                        again.extend(given.values())
                        given.clear()
                    while len(given) < self._ahead():
                        if (call := again.popleft() if again else next(fresh, None)) is None:
                            break
                        behalf = inside.on_behalf()
                        what = (inside.work, self.header, function, call[1], behalf)
                        future = self._connected().submit(*what, pure=False, retries=0)
                        given[future] = call
                        future.add_done_callback(finished.put)
                    if not given:
                        return
                    future = finished.get(timeout=LOOK_S)
                    if future not in given:  # of a connection that was lost
                        continue
                    key, text, tries = given[future]
                    try:
                        answer = inside.settle(future.result(timeout=30), behalf)
                    except (FutureCancelledError, Cancelled, *GONE) as error:
                        log.info("a task is given out again: %s", error)
                        again.append(given.pop(future))
                    except KilledWorker:
                        if tries + 1 >= TRIES:
                            raise Unavailable(f"{self.place.describe()}: {TOO_SMALL}") from None
                        del given[future]
                        again.append((key, text, tries + 1))
                    except RouteScopeError as error:
                        raise type(error)(f"a worker of {self.place.describe()}: {error}") from None
                    else:
                        del given[future]
                        yield key, answer
                except queue.Empty:
                    continue
                except Cancelled:
                    return
                except GONE as error:  # in the moment between two looks at the connection
                    log.info("the connection is gone: %s", error)
                    self._gone = True
        finally:
            with suppress(*GONE):
                for future in given:  # what runs sees that it is not wanted and ends
                    future.cancel(reason="not wanted any more")

    def _ahead(self) -> int:
        """Return the number of tasks to submit ahead."""
        if time.monotonic() - self._looked > 2.0:
            self._look()
        return max(1, AHEAD * self._threads)

    def _look(self) -> int:
        """Count the parallel tasks of the workers."""
        self._looked = time.monotonic()
        try:
            self._threads = sum(self._connected().nthreads().values())
        except GONE as error:
            log.debug("the scheduler cannot be asked for its workers now: %s", error)
            self._gone = True
        return self._threads

    def _connected(self) -> Client:
        if self._client is None:
            raise Unavailable(f"{self.place.describe()}: not connected")
        return self._client

    def _connect(self) -> None:
        """Connect, starting a scheduler for workers of this machine. Raises Unavailable, naming a worker that
        runs another program.
        """
        place = self.place
        if place.local:
            self._local = Local(place.workers, self._settings.home)
            address, secured = self._local.address, self._local.security
        else:
            address, secured = place.scheduler, security(place.scheduler, self._settings)
        client = self._client = connected(address, secured)
        lacking = (
            f"the Dask scheduler at {address} has no worker: start some with `{COMMAND} worker {address}`"
        )
        self._wait(lambda: len(client.nthreads()) >= max(1, place.workers), lacking, self._ended)
        self._look()
        told: Mapping[str, Any] = client.run(inside.facts, self.header, on_error="return")
        for worker, one in told.items():
            if isinstance(one, ModuleNotFoundError):
                why = f"it has no RouteScope ({describe(one)}): install {build()} there"
            elif isinstance(one, BaseException):
                why = describe(one)
            elif one["build"] != build() and place.local:
                why = "the files of RouteScope have changed since it was started: start it again"
            else:
                why = one["error"] if one["build"] == build() else inside.other_build(one["build"], build())
            if why:
                where = f" on {one['host']}" if isinstance(one, dict) and one["host"] else ""
                raise Unavailable(f"worker {worker}{where} cannot be used: {why}")

    def _wait(self, ready: Callable[[], bool], why_not: str, ended: Ended) -> None:
        """Until it is `ready`; Unavailable with `why_not` after LOST_S."""
        end = time.monotonic() + LOST_S
        while True:
            if ended():
                raise Cancelled("stopped while it waited for workers")
            with suppress(*GONE):
                if ready():
                    return
            if time.monotonic() > end:
                raise Unavailable(why_not)
            time.sleep(LOOK_S)

    def _ready(self, ended: Ended) -> bool:
        """Wait for a worker, and for a connection where it is lost; whether it is the same as before."""
        if not self._gone and self._connected().status == "running":
            if self._threads == 0:
                self._wait(lambda: self._look() > 0, f"no worker is left of {self.place.describe()}", ended)
            return True
        log.warning("lost the connection to %s; connecting again", self.place.describe())
        end = time.monotonic() + LOST_S
        while True:
            self.close()
            try:
                self._connect()
            except Unavailable as error:
                if time.monotonic() > end:
                    raise Unavailable(
                        f"{self.place.describe()}: the connection was lost and could not be made again in "
                        f"{LOST_S:.0f} s; finished work is saved, and the same command goes on. {error}"
                    ) from None
                if ended():
                    raise Cancelled("stopped") from None
            else:
                self._gone = False
                return False

    def close(self) -> None:
        """Close the connection, and end the workers of this machine."""
        if self._client is not None:
            with suppress(*GONE):
                self._client.close(timeout=2)
        if self._local is not None:
            self._local.close()
        self._client, self._local, self._threads = None, None, 0


def connected(address: str, secured: Security | None) -> Client:
    """Connect to a scheduler. Raises Unavailable if it does not answer."""
    from distributed import Client

    # A connection that is lost is this module's to report, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return Client(address, security=secured, timeout=CONNECT_S, set_as_default=False, name="routescope")
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        raise Unavailable(
            f"no Dask scheduler answers at {address} within {CONNECT_S:.0f} s ({type(error).__name__}); check"
            " the address, that `dask scheduler` runs there, and whether it uses TLS and which certificates"
        ) from None


def reached(address: str, settings: Settings) -> int:
    """Return the number of workers of a scheduler. Raises Unavailable if it does not answer."""
    client = connected(address, security(address, settings))
    try:
        return len(client.nthreads())
    finally:
        client.close(timeout=2)


def header(place: WorkPlace, settings: Settings) -> str:
    """Return the header of every task: the program's build and the settings without secrets."""
    plain = settings.model_dump(mode="json")
    secret = {name for name in plain if isinstance(getattr(settings, name), SecretStr)}
    given = {name: value for name, value in plain.items() if name not in OWN_SETTINGS and name not in secret}
    if place.local:
        given |= {name: str(getattr(settings, name).resolve()) for name in inside.FOLDERS}
    return json.dumps({"build": build(), "settings": given}, sort_keys=True)
