"""The background preparation on a first start, in the order of use: the dashboard is available at once. Each
part resumes where it was stopped, is recorded when it is done, and is never repeated automatically: a deleted
part stays deleted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar, cast

from core.domain import full_set
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import Cancelled, RouteScopeError, Unavailable
from core.domain.program import PROJECT
from core.evaluation.stored import whole_lines

if TYPE_CHECKING:
    from core.engine.engine import Engine

_recording = threading.Lock()
Report = Callable[[str, int, int], None]  # stage, done, of how many (0: not known)
Make = Callable[["Engine", Report, threading.Event], BackgroundJob | None]  # a job to wait for, or it is made
EXAMPLE = "example-support"  # the evaluation, and the label set, that show a newcomer something real
DOCUMENTS = "support"
ENRICHMENTS = ("headings", "children")  # of which the vectors come with the program
EXAMPLE_QUESTIONS = 12  # in the example label set
RECORD = "first-start.json"
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Part:
    """One thing made ready. `meanwhile` says what works before it is there."""

    name: str
    title: str
    meanwhile: str
    make: Make
    there: Callable[[], bool] = lambda: True  # whether what an earlier process recorded still holds


def _documents(
    engine: Engine, report: Report, cancel: threading.Event, names: Sequence[str] = ENRICHMENTS
) -> None:
    from core.corpus import catalogue, index
    from core.corpus.enrichments import store

    for name in catalogue.SHIPPED:  # others are built when somebody chooses them
        if catalogue.describe(name, engine.settings).state == "not built":
            index.build(None, name, settings=engine.settings, progress=report, cancel=cancel)
    corpus = engine.corpus(DOCUMENTS)
    for name in names:
        store.build(name, corpus, settings=engine.settings, progress=report, cancel=cancel)


def _embedder(engine: Engine, report: Report, cancel: threading.Event) -> None:
    report("loading", 0, 0)
    loading = engine.loading(engine.settings.embedder)
    while not loading.done():
        if cancel.wait(LOOK_S):
            raise Cancelled("stopped by the user")
    loading.result()


def _example_labels(engine: Engine, _report: Report, _cancel: threading.Event) -> BackgroundJob | None:
    from core.evaluation.labels import desk, pool

    store = engine.store
    if store is None or desk.sets(store) or desk.sets(store, deleted=True):
        return None
    asked = [one for one in pool.of_corpus(DOCUMENTS, engine.settings) if one.split == "dev"]
    step = max(1, len(asked) // EXAMPLE_QUESTIONS)
    desk.create(store, EXAMPLE, DOCUMENTS, asked[::step][:EXAMPLE_QUESTIONS])
    return pool.begin(engine, EXAMPLE, FIRST_POOLED, depth=5)


def _example_evaluation(engine: Engine, _report: Report, _cancel: threading.Event) -> BackgroundJob | None:
    from core.evaluation import background, experiment_store
    from core.evaluation.spec import Spec

    if any(name != EXAMPLE for name in experiment_store.names(engine.settings)):
        return None
    # An example that an earlier version left half done has other routes: nobody made anything of it.
    return background.begin(engine, EXAMPLE, Spec(DOCUMENTS, split="all", baseline="hybrid_rrf"), renew=True)


def _model(engine: Engine, report: Report, cancel: threading.Event) -> None:
    from core.backends.llm import catalogue
    from core.backends.llm.fetch import pull

    settings = engine.settings
    if settings.llm_base_url or settings.llm not in {one.name for one in catalogue.ARTEFACTS}:
        return

    def tick(stage: str, done: int, total: int) -> None:
        report(stage, done >> 20, total >> 20)

    pull(settings.llm, settings=settings, progress=tick, cancel=cancel)


def _packages(_engine: Engine, report: Report, cancel: threading.Event) -> None:
    if full_set.complete() or not full_set.own_environment():
        return
    command = [sys.executable, "-m", "core.domain.full_set"]
    with subprocess.Popen(
        command,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as installer:
        lines = cast("IO[str]", installer.stdout)
        last = ""
        for line in lines:
            last = line.strip() or last
            report(last[:80], 0, 0)
            if cancel.is_set():
                installer.terminate()
        if cancel.is_set():
            raise Cancelled("stopped by the user")
    if installer.returncode:
        raise Unavailable(last[:300])


_token_vectors = partial(_documents, names=("tokens",))
FIRST_POOLED = ("bm25", "dense", "hybrid_rrf")
LANES: tuple[tuple[Part, ...], ...] = (
    (
        Part("documents", "Example documents", "They are there in a few seconds.", _documents),
        Part("embedder", "Embedding model", "Routes that search by words alone answer now.", _embedder),
        Part("example labels", "Example label set", "Questions can be asked.", _example_labels),
        Part("token vectors", "Token vectors for reranking", "Reranking takes longer.", _token_vectors),
        Part("example evaluation", "Example evaluation", "Questions can be asked.", _example_evaluation),
    ),
    (Part("packages", "Packages for other models", "The defaults work.", _packages, full_set.complete),),
    (Part("language model", "Language model, in MiB", "Sample questions have recorded replies.", _model),),
)


class Preparing(BackgroundJob):
    """A part of the first start; the next of its lane begins when it has ended, unless it was stopped."""

    kind: ClassVar[str] = "preparation"
    forgotten_s: ClassVar[float] = float("inf")  # a stopped one is not begun again by itself

    def __init__(self, engine: Engine, lane: int, parts: Sequence[Part]) -> None:
        self.part, self._later = parts[0], tuple(parts[1:])
        super().__init__(self.part.title, home=engine.settings.home)
        self._engine, self._lane = engine, lane

    @property
    def left(self) -> None:
        """Return None, as the time left is unknown: stages differ in length."""
        return

    def _do(self) -> None:
        job = self.part.make(self._engine, self._report, self._cancel)
        if job is not None:  # it is listed by itself
            self.listed = False
            job.wait()
            if job.error is not None:
                raise RouteScopeError(job.error)
            if job.cancelled:
                raise Cancelled("stopped by the user")
        home = self._engine.settings.home
        with _recording:
            done = recorded(home) | {self.part.name: datetime.now(UTC).isoformat(timespec="seconds")}
            whole_lines(home / RECORD, [json.dumps(done, indent=1), "\n"])

    def _work(self) -> None:
        super()._work()
        if self._later and not self._stopped:
            _begin(self._engine, self._lane, self._later)

    def _report(self, stage: str, done: int, total: int) -> None:
        self.finished, self.total = done, total
        self.stage = f"{stage}, {done:,} of {total:,}" if total else stage


def begin(engine: Engine) -> None:
    """Begin what a first start has not made ready yet, once a process; nothing where the settings say so."""
    home = engine.settings.home
    if engine.settings.first_start == "off":
        return
    for lane, parts in enumerate(LANES):
        if jobs.latest(Preparing, (home, lane)) is None:
            made = recorded(home)
            if waiting := [part for part in parts if part.name not in made or not part.there()]:
                _begin(engine, lane, waiting)


def again(engine: Engine, job: Preparing) -> None:
    """Try once more what failed or was stopped, and what was to follow."""
    _begin(engine, job._lane, (job.part, *job._later))


def known(home: Path) -> list[Preparing]:
    """Return the parts that this process was at last, one a lane, in the order of lanes."""
    found = (jobs.latest(Preparing, (home, lane)) for lane in range(len(LANES)))
    return [job for job in found if job is not None]


def recorded(home: Path) -> dict[str, str]:
    """Return when each part was done, ISO 8601, UTC."""
    try:
        found = json.loads((home / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _begin(engine: Engine, lane: int, parts: Sequence[Part]) -> None:
    jobs.begin(Preparing, (engine.settings.home, lane), lambda: Preparing(engine, lane, parts))
