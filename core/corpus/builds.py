"""Index builds that run in the background of this process, so that no page has to stay open for them."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from core.errors import BadInput, Cancelled
from core.settings import Settings
from core.trace import describe

_LOG = logging.getLogger(__name__)
_builds: dict[str, Build] = {}
_lock = threading.Lock()


class Build:
    """One build: how far it is, and how it ended."""

    def __init__(self, name: str, source: str | Path, settings: Settings) -> None:
        self.name = name
        self.stage, self.finished, self.total = "starting", 0, 0
        self.error: str | None = None
        self.stopped = False
        self._source, self._settings = source, settings
        self._cancel = threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._work, name=f"index-{name}", daemon=True)

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return not self._thread.is_alive() and self._thread.ident is not None

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._began

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop at the next safe point; what was embedded stays for the next build."""
        self._cancel.set()

    def wait(self, timeout: float | None = None) -> None:
        """Until it has ended."""
        self._thread.join(timeout)

    def _progress(self, stage: str, done: int, total: int) -> None:
        self.stage, self.finished, self.total = stage, done, total

    def _work(self) -> None:
        from core.corpus import index

        try:
            index.build(
                None if isinstance(self._source, str) else self.name,
                self._source,
                settings=self._settings,
                progress=self._progress,
                cancel=self._cancel,
            )
        except Cancelled:
            self.stopped = True
        except Exception as error:  # noqa: BLE001 - shown on the page; a thread has nobody else to tell
            _LOG.exception("building corpus %s", self.name)
            self.error = describe(error)


def start(name: str, source: str | Path, settings: Settings) -> Build:
    """Begin building a corpus; BadInput if it is being built already."""
    with _lock:
        known = _builds.get(name)
        if known is not None and not known.done:
            raise BadInput(f"corpus {name!r} is being built already; wait for it or stop it")
        build = _builds[name] = Build(name, source, settings)
        build.begin()
        return build


def get(name: str) -> Build | None:
    """The latest build of a corpus in this process."""
    return _builds.get(name)


def under_way() -> list[Build]:
    """Builds that have not ended."""
    return [build for build in list(_builds.values()) if not build.done]
