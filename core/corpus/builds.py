"""Index builds that run in the background of this process, so that no page has to stay open for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from core.corpus.build import Progress
from core.corpus.source import Source
from core.errors import BadInput, Cancelled, describe
from core.settings import Settings

Work = Callable[[Progress, threading.Event], object]
_LOG = logging.getLogger(__name__)
_builds: dict[str, Build] = {}
_lock = threading.Lock()


class Build:
    """One build: how far it is, and how it ended."""

    def __init__(self, name: str, work: Work) -> None:
        self.name = name
        self.stage, self.finished, self.total = "starting", 0, 0
        self.error: str | None = None
        self.stopped = False
        self._do = work
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
        try:
            self._do(self._progress, self._cancel)
        except Cancelled:
            self.stopped = True
        except Exception as error:  # noqa: BLE001 - shown on the page; a thread has nobody else to tell
            _LOG.exception("building %s", self.name)
            self.error = describe(error)


def start(name: str, source: Source | str | Path, settings: Settings) -> Build:
    """Begin building a corpus; BadInput if it is being built already."""

    def work(progress: Progress, cancel: threading.Event) -> None:
        from core.corpus import index

        called = None if isinstance(source, str) else name
        index.build(called, source, settings=settings, progress=progress, cancel=cancel)

    return _begin(name, work)


def start_enrichment(corpus: str, name: str, settings: Settings) -> Build:
    """Begin making an enrichment of a corpus; BadInput if it is being made already."""

    def work(progress: Progress, cancel: threading.Event) -> None:
        from core.corpus.index import open_corpus
        from core.enrich import store

        opened = open_corpus(corpus, settings=settings)
        store.build(name, opened, settings=settings, progress=progress, cancel=cancel)

    return _begin(f"{corpus} {name}", work)


def start_work(name: str, work: Work) -> Build:
    """Begin any other work; BadInput if one of this name is under way."""
    return _begin(name, work)


def _begin(name: str, work: Work) -> Build:
    with _lock:
        known = _builds.get(name)
        if known is not None and not known.done:
            raise BadInput(f"{name!r} is under way already; wait for it or stop it")
        build = _builds[name] = Build(name, work)
        build.begin()
        return build


def get(name: str) -> Build | None:
    """The latest build of a corpus, or of an enrichment ("corpus name"), in this process."""
    return _builds.get(name)


def under_way() -> list[Build]:
    """Builds that have not ended."""
    return [build for build in list(_builds.values()) if not build.done]
