"""A pool that distributes tasks to the workers of a Dask scheduler and survives the loss of any of them."""

from __future__ import annotations

import json
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

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
OWN_SETTINGS = (
    "home",
    "models_dir",
    "external",
    "corpora",
    "only_public",
    "scheduler",
    *FILES,
)  # which a worker has of its own
GONE = (OSError, RuntimeError, TimeoutError)  # what Dask raises where a connection or its loop is closed
Ended = Callable[[], bool]


class Pool:
    """The workers of a place, connected while it is entered. Of one thread."""

    def __init__(self, place: WorkPlace, settings: Settings, *, ended: Ended = lambda: False) -> None:
        """Connect to the workers. `ended` is polled while waiting: Cancelled is raised once it returns
        True.
        """
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
            self._check()
        except BaseException:
            self.close()
            raise
        return self

    @property
    def count(self) -> int:
        """Return the number of parallel tasks of the workers at the last check."""
        return self._threads

    @property
    def pid(self) -> int | None:
        """Return the process with this machine's scheduler, or None if it runs elsewhere."""
        return self._local.pid if self._local is not None else None

    def each(self, function: str, calls: Iterable[tuple[K, Any]], ended: Ended) -> Iterator[tuple[K, bytes]]:
        """Yield the result of `function`, "core.module:name", for each JSON value of `calls`, with its key,
        in order of completion. Stops early once `ended`. Raises the function's exceptions, and Unavailable if
        no worker is left.

        Calls are submitted a few at a time. Those of a lost worker or scheduler are submitted again.
        """
        work = _PoolTasks(self, function, calls)
        try:
            while not ended():
                try:
                    if not self._ready(ended):
                        work.lost()
                    work.fill()
                    if not work.open:
                        return
                    found = work.next()
                except Cancelled:
                    return
                except GONE as error:  # in the moment between two looks at the connection
                    log.info("the connection is gone: %s", error)
                    self._gone = True
                    continue
                if found is not None:
                    yield found
        finally:
            work.drop()

    @property
    def ahead(self) -> int:
        """Return the number of tasks to submit ahead."""
        now = time.monotonic()
        if now - self._looked > 2.0:
            self._look()
        return max(1, AHEAD * self._threads)

    def _look(self) -> int:
        """Count the parallel tasks of the workers."""
        self._looked = time.monotonic()
        try:
            self._threads = sum(self.connected().nthreads().values())
        except GONE as error:
            log.debug("the scheduler cannot be asked for its workers now: %s", error)
            self._gone = True
        return self._threads

    def connected(self) -> Client:
        """Return the client. Raises Unavailable if it is not connected."""
        if self._client is None:
            raise Unavailable(f"{self.place.describe()}: not connected")
        return self._client

    def _connect(self) -> None:
        """Connect, starting a scheduler for workers of this machine."""
        place = self.place
        if place.local:
            self._local = Local(place.workers, self._settings.home)
            address, secured = self._local.address, self._local.security
        else:
            address = place.scheduler
            secured = security(address, self._settings)
        self._client = connected(address, secured)
        wanted = place.workers if place.local else 1
        self._wait(
            lambda: len(self._client.nthreads()) >= wanted if self._client else False,
            f"the Dask scheduler at {address} has no worker: start some with `{COMMAND} worker {address}`",
        )
        self._look()

    def _wait(self, ready: Callable[[], bool], why_not: str, ended: Ended | None = None) -> None:
        """Until it is `ready`; Unavailable with `why_not` after LOST_S."""
        end = time.monotonic() + LOST_S
        while True:
            if (ended or self._ended)():
                raise Cancelled("stopped while it waited for workers")
            try:
                if ready():
                    return
            except GONE as error:
                log.debug("not ready: %s", error)
            if time.monotonic() > end:
                raise Unavailable(why_not)
            time.sleep(LOOK_S)

    def _check(self) -> None:
        """Check that every worker runs this program. Raises Unavailable, naming the others."""
        told: Mapping[str, Any] = self.connected().run(inside.facts, self.header, on_error="return")
        for address, one in told.items():
            if isinstance(one, ModuleNotFoundError):
                why = f"it has no RouteScope ({describe(one)}): install {build()} there"
            elif isinstance(one, BaseException):
                why = describe(one)
            elif one["build"] != build():
                why = inside.other_build(one["build"], build())
                if self.place.local:
                    why = "the files of RouteScope have changed since it was started: start it again"
            else:
                why = one["error"]
            if why:
                where = one["host"] if isinstance(one, dict) else ""
                raise Unavailable(f"worker {address}{f' on {where}' if where else ''} cannot be used: {why}")

    def _ready(self, ended: Ended) -> bool:
        """Wait for a worker, and for a connection where it is lost; whether it is the same as before."""
        if not self._gone and self.connected().status == "running":
            if self._threads == 0:
                self._wait(lambda: self._look() > 0, f"no worker is left of {self.place.describe()}", ended)
            return True
        log.warning("lost the connection to %s; connecting again", self.place.describe())
        end = time.monotonic() + LOST_S
        while True:
            self.close()
            try:
                self._connect()
                self._check()
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
            try:
                self._client.close(timeout=2)
            except GONE as error:
                log.debug("the connection was not closed in time: %s", error)
            self._client = None
        if self._local is not None:
            self._local.close()
            self._local = None
        self._threads = 0


class _PoolTasks(Generic[K]):
    """Calls on their way: waiting, given out, or to be given out again."""

    def __init__(self, pool: Pool, function: str, calls: Iterable[tuple[K, Any]]) -> None:
        self._pool, self._function, self._behalf = pool, function, inside.on_behalf()
        self._calls = ((key, json.dumps(value), 0) for key, value in calls)
        self._again: deque[tuple[K, str, int]] = deque()
        self._given: dict[Future, tuple[K, str, int]] = {}
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    @property
    def open(self) -> bool:
        """Return True if tasks are outstanding."""
        return bool(self._given or self._again)

    def fill(self) -> None:
        """Give out as much as the workers shall have waiting."""
        while len(self._given) < self._pool.ahead:
            call = self._again.popleft() if self._again else next(self._calls, None)
            if call is None:
                return
            self._behalf = inside.on_behalf()
            future = self._pool.connected().submit(
                inside.work, self._pool.header, self._function, call[1], self._behalf, pure=False, retries=0
            )
            self._given[future] = call
            future.add_done_callback(self._ended.put)

    def next(self) -> tuple[K, bytes] | None:
        """Return a finished task, or None if none finished for a moment or one was submitted again."""
        try:
            future = self._ended.get(timeout=LOOK_S)
        except queue.Empty:
            return None
        call = self._given.get(future)
        if call is None:  # of a connection that was lost
            return None
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            result: bytes = future.result(timeout=30)
        except (FutureCancelledError, *GONE) as error:
            log.info("a task is given out again: %s", error)
            self._again.append(call)
        except KilledWorker:
            if call[2] + 1 >= TRIES:
                raise Unavailable(
                    f"{self._pool.place.describe()}: the same task ended several workers, one after another; "
                    "their memory may be too small. Finished work is saved, and the same command goes on"
                ) from None
            self._again.append((call[0], call[1], call[2] + 1))
        except Cancelled:  # by a scheduler that was lost, or ended
            self._again.append(call)
        except RouteScopeError as error:
            raise type(error)(f"a worker of {self._pool.place.describe()}: {error}") from None
        else:
            del self._given[future]
            return call[0], inside.settle(result, self._behalf)
        del self._given[future]
        return None

    def lost(self) -> None:
        """Give out again all that was on its way over a connection that is no more."""
        self._again.extend(self._given.values())
        self._given.clear()

    def drop(self) -> None:
        """Want nothing more: what runs sees that it is not wanted and ends."""
        for future in self._given:
            try:
                future.cancel(reason="not wanted any more")
            except GONE as error:
                log.debug("with the connection: %s", error)
        self._given.clear()


def connected(address: str, secured: Security | None) -> Client:
    """Connect to a scheduler. Raises Unavailable if it does not answer."""
    from distributed import Client

    # A connection that is lost is this module's to report, in one line.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return Client(address, security=secured, timeout=CONNECT_S, set_as_default=False, name="routescope")
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        how = (
            "check the address, that `dask scheduler` runs there, and the certificates of both"
            if address.startswith("tls")
            else "check the address, and that `dask scheduler` runs there without TLS"
        )
        raise Unavailable(
            f"no Dask scheduler answers at {address} within {CONNECT_S:.0f} s ({type(error).__name__}); {how}"
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
