"""A cache of expensive resources: the first thread to request a key opens the resource, and threads that
request other keys never wait.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MAX_OPEN = 64  # things of a kind that stay open, the one used longest ago goes first
LEAVE_S = 20.0  # that the end of the process waits for what is being opened
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """Libraries that are in the midst of being loaded when the interpreter ends abort the process."""
    end = time.monotonic() + LEAVE_S
    for thread in list(_threads):
        thread.join(max(0.0, end - time.monotonic()))


class Recent(OrderedDict[K, V]):
    """A table of the `most` entries that were put in last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            self.popitem(last=False)


class Once(Generic[K, V]):
    """Things by key. Each is opened in a thread of its own, so that nobody who leaves stops it for others.

    Who asks for a thing that is being opened waits for it, or gets the same error; an error is not kept, so
    the next who asks tries again. Safe to call from any thread.
    """

    def __init__(self, most: int = MAX_OPEN) -> None:
        self._lock = threading.Lock()  # for the tables only: never held while something is opened
        self._there: Recent[K, Future[V]] = Recent(most)  # of results
        self._opening: dict[K, Future[V]] = {}

    def get(self, key: K, make: Callable[[], V], good: Callable[[V], bool] = lambda _: True) -> V:
        """Return the value, opened by `make` unless it is cached and still `good`. Raises the errors of
        `make`.
        """
        return self.begin(key, make, good).result()

    def begin(self, key: K, make: Callable[[], V], good: Callable[[V], bool] = lambda _: True) -> Future[V]:
        """As `get`, without waiting for it."""
        known = self._known(key)
        if known is not None and good(known.result()):
            return known
        with self._lock:
            if key in self._opening:
                return self._opening[key]
            if key in self._there and self._there[key] is not known:
                return self._there[key]  # opened since this one looked
            future = self._opening[key] = Future()
        thread = threading.Thread(
            target=self._open, args=(key, make, future), name=f"open-{key}", daemon=True
        )
        thread.start()
        _threads.add(thread)
        return future

    def there(self, key: K) -> V | None:
        """Return the thing if it is open; never open it."""
        known = self._known(key)
        return None if known is None else known.result()

    def _known(self, key: K) -> Future[V] | None:
        """Return what is open under a key, as one that was used now."""
        with self._lock:
            if key in self._there:
                self._there.move_to_end(key)
            return self._there.get(key)

    def _open(self, key: K, make: Callable[[], V], future: Future[V]) -> None:
        try:
            made = make()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            with self._lock:
                del self._opening[key]
            future.set_exception(error)
            return
        future.set_result(made)
        with self._lock:
            self._there[key] = self._opening.pop(key)
