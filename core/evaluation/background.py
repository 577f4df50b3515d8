"""Evaluations running in this process: they continue without an open page, and resume where they stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput
from core.evaluation.audit import audit
from core.evaluation.chunkings import measuring
from core.evaluation.chunkings.measuring import Group
from core.evaluation.experiment import Prepared, perform, prepare
from core.evaluation.experiment_store import LABELLED, opened, place
from core.evaluation.journal import AnotherEvaluation
from core.evaluation.runner import Course
from core.evaluation.spec import Spec

if TYPE_CHECKING:
    from core.backends.workers.place import WorkPlace
    from core.engine.engine import Engine


class Evaluating(BackgroundJob):
    """An evaluation in its own thread. Results are on the disk after each question. If it is stopped, the
    figures cover the questions asked so far.
    """

    kind = "evaluation"

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        ready: Prepared,
        said: Sequence[str],
        group: Group | None,
        *,
        retry: bool,
        renew: bool,
        workers: WorkPlace | None,
    ) -> None:
        questions = len(ready.labelled.questions) * ready.spec.repeats
        super().__init__(folder.name, group.total if group else questions, engine.settings.home)
        self.name, self.folder, self.ready, self.group = folder.name, folder, ready, group
        self.resumes = (folder / LABELLED).is_file()
        self.warnings: list[str] = [*said, *ready.warnings]
        self._said = said
        self._engine, self._retry, self._workers, self._renew = engine, retry, workers, renew
        self._first: int | None = None  # questions that were finished before it began
        self._asked = 0.0

    @property
    def left(self) -> float | None:
        """Seconds until all is asked, by what a question took so far; None before the first has ended."""
        new = self.finished - (self._first or 0)
        if self.done or new <= 0:
            return None
        return (time.perf_counter() - self._asked) / new * (self.total - self.finished)

    def _do(self) -> None:
        course: Course = {
            "retry": self._retry,
            "progress": self._follow,
            "warn": self.warnings.append,
            "ended": self._cancel.is_set,
        }
        if self.ready.spec.audit:
            audit.perform(self._engine, self.ready, self.folder, said=self._said, **course)
            return
        course["workers"] = self._workers
        if self.group is not None:
            measuring.perform(self._engine, self.group, out=self.folder, **course)
            return
        for course["fresh"] in (False, True):
            try:
                perform(self._engine, self.ready, out=self.folder, **course)
                return
            except AnotherEvaluation:
                if course["fresh"] or not self._renew:
                    raise

    def _follow(self, done: int, _total: int) -> None:
        if self._first is None:
            self._first, self._asked = done, time.perf_counter()
        self.finished = done


def begin(
    engine: Engine,
    name: str,
    spec: Spec,
    *,
    retry: bool = False,
    renew: bool = False,
    workers: WorkPlace | None = None,
) -> Evaluating:
    """Begin or resume the evaluation called `name`; if it is running, return that job. `retry` asks failed
    questions again. `renew` discards results of other routes or another index, which otherwise raise an
    error. `workers` ask the questions instead of this process, except in an audit. Raises BadInput or
    Unavailable at once if it cannot begin, also if the name belongs to another evaluation.
    """
    folder = place(engine.settings, name)

    def made() -> Evaluating:
        before = Spec.read(opened(folder).spec) if (folder / LABELLED).is_file() else None
        if before not in (None, Spec.read(spec.document())):
            raise BadInput(f"the name {name!r} is taken by another evaluation; give another name")
        if spec.audit and workers is not None:
            raise BadInput("an audit of decisions asks in this process; choose it, or leave the audit out")
        group: Group | None = None
        said: Sequence[str] = ()
        if spec.audit:
            ready, said = audit.prepare(engine, spec)
        elif spec.chunkings:
            group = measuring.prepare(engine, spec)
            ready, said = group.parts[spec.corpus], group.warnings
        else:
            ready = prepare(engine, spec)
        return Evaluating(engine, folder, ready, said, group, retry=retry, renew=renew, workers=workers)

    return jobs.begin(Evaluating, folder, made)


def resume(engine: Engine, name: str, *, retry: bool = False, workers: WorkPlace | None = None) -> Evaluating:
    """Resume a saved evaluation as it was described; see `begin`."""
    spec = Spec.read(opened(place(engine.settings, name)).spec)
    return begin(engine, name, spec, retry=retry, workers=workers)


def under_way(engine: Engine, name: str) -> Evaluating | None:
    """Return the evaluation of that name that this process began last: under way, or how it ended."""
    return jobs.latest(Evaluating, place(engine.settings, name))


def active(engine: Engine) -> list[Evaluating]:
    """Return the evaluations of this home that this process is at."""
    return [job for job in jobs.under_way(engine.settings.home) if isinstance(job, Evaluating)]
