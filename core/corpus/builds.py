"""Index builds that run in the background of this process, so that no page has to stay open for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from core.backends.workers.place import WorkPlace
from core.corpus import catalogue, uploads
from core.corpus.build import Progress
from core.corpus.catalogue import BUILT_IN
from core.corpus.embeddings import gate
from core.corpus.helpers import helpers
from core.corpus.source import Source
from core.domain import people
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, NotConfirmed
from core.domain.settings import Settings

Work = Callable[[Progress, threading.Event], object]


class Build(BackgroundJob):
    """One build: how far it is, and how it ended. Stopped, what was embedded stays for the next one."""

    kind = "build"
    kept = 64

    left = None  # the stages take different times

    def __init__(
        self, name: str, work: Work, home: Path | None = None, confirm: Callable[[], Build] | None = None
    ) -> None:
        """`confirm` begins it again, with what it costs confirmed."""
        super().__init__(name, home=home)
        self.confirm: Callable[[], Build] | None = None  # set once it ended because that was needed
        self._confirm, self._doing = confirm, work
        self.name, self.stage = name, "starting"
        self._made: object = None

    @property
    def cancelled(self) -> bool:
        """Return True if the build was stopped before its end."""
        return self._stopped

    @property
    def result(self) -> Any:
        """Return the result of the work."""
        return self._made

    def _do(self) -> None:
        def progress(stage: str, done: int, total: int) -> None:
            self.stage, self.finished, self.total = stage, done, total

        try:
            self._made = self._doing(progress, self._cancel)
        except NotConfirmed:
            self.confirm = self._confirm
            raise


def start(
    name: str,
    source: Source | str | Path,
    settings: Settings,
    workers: WorkPlace | None = None,
    *,
    confirmed: bool = False,
    always: bool = False,
) -> Build:
    """Start building a corpus, by `workers` if given. Raises BadInput if it is being built already,
    NotAllowed if the person may not read its files: only owners may index files that were not uploaded,
    do not belong to the program and are not the corpus' source already. `confirmed`: build even if embedding
    by a service passes a limit of the settings; `always`: its cost must be confirmed even below the limits.
    """
    path = source.path if isinstance(source, Source) else source if isinstance(source, Path) else None
    if path is not None:
        found = catalogue.current(name, settings)
        known = [one.path for one in (*BUILT_IN.values(), *([found.source] if found else []))]
        if path not in known and not uploads.is_uploaded(path, settings):
            people.require("machine")

    def make(**how: Any) -> None:
        from core.corpus import index

        index.build(None if isinstance(source, str) else name, source, **how)

    return _begin_making(name, make, settings, workers, confirmed, always)


def start_enrichment(
    corpus: str, name: str, settings: Settings, workers: WorkPlace | None = None, *, confirmed: bool = False
) -> Build:
    """Begin making an enrichment of a corpus, by `workers` where some are given; BadInput if it is being made
    already.
    """

    def make(**how: Any) -> None:
        from core.corpus.enrichments import store
        from core.corpus.index import open_corpus

        store.build(name, open_corpus(corpus, settings=settings), **how)

    return _begin_making(f"{corpus} {name}", make, settings, workers, confirmed)


def start_chunkings(
    base: str,
    sources: Sequence[Source],
    settings: Settings,
    workers: WorkPlace | None = None,
    *,
    confirmed: bool = False,
) -> Build:
    """Begin building chunkings of a corpus, one after the other, by `workers` where some are given; those
    built before a stop stay. BadInput if some are being built already.
    """

    def make(**how: Any) -> None:
        from core.corpus import index

        for _ in index.build_each(sources, **how):
            pass

    return _begin_making(chunkings_of(base), make, settings, workers, confirmed)


def _begin_making(
    name: str,
    make: Callable[..., None],
    settings: Settings,
    workers: WorkPlace | None,
    confirmed: bool,
    always: bool = False,
) -> Build:
    """Begin building in the background what `make` builds with the arguments of `core.corpus.index.build`."""
    begin = gate(settings, confirmed=confirmed, always=always)

    def work(progress: Progress, cancel: threading.Event) -> None:
        with helpers(workers, settings) as helping:
            make(settings=settings, progress=progress, cancel=cancel, helpers=helping, begin=begin)

    again = partial(_begin_making, name, make, settings, workers, True)
    return start_work(name, work, settings.home, again)


def chunkings_of(base: str) -> str:
    """Return the name of the build of a corpus' chunkings."""
    return f"{base} chunkings"


def start_work(
    name: str, work: Work, home: Path | None = None, confirm: Callable[[], Build] | None = None
) -> Build:
    """Begin any work; BadInput if one of this name is under way."""
    fresh = Build(name, work, home, confirm)
    if jobs.begin(Build, name, lambda: fresh) is not fresh:
        raise BadInput(f"{name!r} is already in progress; wait for it to finish or stop it")
    return fresh


def get(name: str) -> Build | None:
    """Return the latest build of a corpus, or of an enrichment ("corpus name"), in this process."""
    return jobs.latest(Build, name)


def under_way() -> list[Build]:
    """Return the running builds."""
    return [job for job in jobs.under_way() if isinstance(job, Build)]
