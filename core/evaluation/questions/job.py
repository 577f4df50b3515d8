"""Questions generated in the background, into a label set: no page has to stay open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.corpus.source import slug
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import Unavailable
from core.evaluation.questions.generate import Generated, generate
from core.evaluation.questions.label_set import add
from core.evaluation.questions.write import Kind

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.store import Store

FOLDER = (
    "questions"  # in the home: a file for each label set, so that what was written is never written again
)


class Generating(BackgroundJob):
    """Writes questions about a corpus into the label set `name`; each is there as soon as it is kept."""

    kind = "questions"

    def __init__(
        self, engine: Engine, store: Store, name: str, corpus: str, count: int, kinds: Sequence[Kind]
    ) -> None:
        super().__init__(name, count, engine.settings.home)
        self.name, self.corpus = name, corpus
        self.found: Generated | None = None
        self._engine, self._store, self._kinds = engine, store, tuple(kinds)
        self._file = engine.settings.home / FOLDER / f"{slug(name)}.jsonl"

    def _do(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self.found = generate(
            self._engine,
            self.corpus,
            self._file,
            self.total,
            kinds=self._kinds,
            progress=self._follow,
            cancel=self._cancel,
        )
        self._put()

    def _follow(self, done: int, _of: int) -> None:
        if done > self.finished:
            self.finished = done
            self._put()

    def _put(self) -> None:
        from core.evaluation.questions import question_file

        if lines := question_file.read(self._file):
            add(self._store, self.name, self._engine.corpus(self.corpus), lines)


def begin(engine: Engine, name: str, corpus: str, count: int, kinds: Sequence[Kind]) -> Generating:
    """Begin to generate until there are `count` questions, or return the running job. Raises Unavailable if
    there is no model or no store.
    """
    store = engine.store
    if store is None:
        raise Unavailable("label sets are not stored here")
    if why := engine.llm().status():
        raise Unavailable(f"questions are written by the language model: {why}")
    made = Generating(engine, store, name, corpus, count, kinds)
    return jobs.begin(Generating, (engine.settings.home, name), lambda: made)


def latest(engine: Engine, name: str) -> Generating | None:
    """Return the last job that this process began for a set."""
    return jobs.latest(Generating, (engine.settings.home, name))
