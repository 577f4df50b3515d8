"""Evaluations running in this process, which continue without an open page and resume where they stopped, and
the list of saved ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from core.analysis.timeline import Latency
from core.backends.workers.place import WorkPlace
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, RouteScopeError
from core.engine.engine import Engine
from core.evaluation import experiment_store
from core.evaluation.audit import audit
from core.evaluation.chunkings import measuring
from core.evaluation.chunkings.measuring import Group
from core.evaluation.experiment import Prepared, perform, prepare
from core.evaluation.experiment_store import LABELLED, opened, place
from core.evaluation.outcome import JOURNAL, AnotherEvaluation, busy
from core.evaluation.runner import Course
from core.evaluation.spec import Spec
from core.evaluation.stored import figures_in


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
        self.warnings: list[str] = list(ready.warnings)
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
            audit.perform(self._engine, self.ready, self.folder, **course)
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
        if spec.audit:
            ready = audit.prepare(engine, spec)
        elif spec.chunkings:
            group = measuring.prepare(engine, spec)
            ready = group.parts[spec.corpus]
        else:
            ready = prepare(engine, spec)
        return Evaluating(engine, folder, ready, group, retry=retry, renew=renew, workers=workers)

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


State = Literal["finished", "stopped", "under way", "failed", "damaged"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One saved evaluation. `done` of `total` questions were asked, repeated rounds counted too; `failed` are
    results that did not end well. `why` says what ended the last try of this process, or what is damaged.
    """

    name: str
    corpus: str
    split: str
    routes: int
    done: int
    total: int
    state: State
    changed: str  # ISO 8601, UTC
    failed: int = 0
    why: str = ""


def entry(folder: Path) -> Entry:
    """Return an evaluation's entry from its folder, whichever process runs it: finished, stopped or damaged.
    Reads no outcome.
    """
    changed = datetime.fromtimestamp(max(experiment_store.stamp(folder)), UTC).isoformat(timespec="seconds")
    try:
        document = figures_in(folder / experiment_store.LABELLED, {"spec", "set"}) or {}
        spec, questions = document["spec"], len(document["set"]["questions"])
        figures = figures_in(folder / experiment_store.FIGURES, set()) or {}
        first = _asked(folder)
        below = (*folder.glob("repeat-*"), *folder.glob("chunkings/*"), *folder.glob("chunkings/*/repeat-*"))
        done = first + sum(map(_asked, sorted(below)))
        whole = bool(figures) and not figures["interrupted"] and figures["queries"] == first
        total = questions * int(spec["repeats"]) * (1 + len(spec.get("chunkings") or ()))
        rows = figures.get("routes") or {}
        return Entry(
            folder.name,
            str(spec["corpus"]),
            str(spec["split"]),
            len(rows) or len(spec["routes"]),
            min(done, total),
            done if whole else total,
            "finished" if whole else "stopped",
            changed,
            sum(row["failed"] for row in rows.values()),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadInput) as error:
        return Entry(
            folder.name, "", "", 0, 0, 0, "damaged", changed, why=f"{type(error).__name__}: {error}"[:300]
        )


def now(engine: Engine, found: Entry) -> Entry:
    """Return the entry with what this process knows of it: that it is under way here, or what ended it."""
    try:
        known = under_way(engine, found.name)
        folder = experiment_store.place(engine.settings, found.name)
    except RouteScopeError:
        return found
    if known is not None and not known.done:
        return replace(found, done=known.finished, total=known.total, state="under way")
    if found.state in ("stopped", "finished") and busy(folder):
        return replace(found, state="under way", why="another process is running it")
    if known is not None and known.error:
        return replace(found, state="finished" if found.state == "finished" else "failed", why=known.error)
    return found


def medians(found: Sequence[Latency], *, answered: bool) -> dict[str, float]:
    """Each route's median milliseconds over earlier runs in which it gave an answer, or gave none.

    Times measured now go before those of work from the cache or a recording.
    """
    rows = [one for one in found if one.answered == answered and one.at[50] is not None]
    rows.sort(key=lambda one: one.source == "now")
    return {one.key: float(one.at[50] or 0.0) for one in rows}


def estimate(
    history: Mapping[str, float], routes: Sequence[str], questions: int
) -> tuple[float, tuple[str, ...]]:
    """Return how many seconds so many questions take at most, by earlier runs: the sum of the routes' median
    milliseconds `history`, as routes that run together share work; and the routes that were never measured.
    """
    known = [history[name] for name in routes if name in history]
    return sum(known) * questions / 1000, tuple(name for name in routes if name not in history)


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """Return `wanted` as an allowed name, followed by a number if it is taken."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in wanted)[:70]
    name = kept if experiment_store.NAME.fullmatch(kept) else f"evaluation{kept}"
    numbered = (f"{name}-{n}" if n > 1 else name for n in range(1, len(taken) + 2))
    return next(one for one in numbered if one not in taken)


def _asked(folder: Path) -> int:
    """Return the finished questions of a journal: its lines after the first, of which each ends in
    a break.
    """
    path = folder / JOURNAL
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return max(0, sum(line.endswith(b"\n") for line in file) - 1)
