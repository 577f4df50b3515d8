"""Traces into the store: the corpus they belong to, or one made of what they returned, and their runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.corpus.build import Progress
from core.corpus.corpus import Corpus
from core.corpus.source import slug
from core.domain.errors import BadInput, Unavailable
from core.domain.settings import Settings
from core.engine import imported, returned_corpus
from core.engine.imported import ImportedTraces
from core.store import Store
from core.store.traces_in import ForeignTrace


class Opens(Protocol):
    """The engine attributes this module uses."""

    settings: Settings
    store: Store | None

    def corpus(self, name: str, /) -> Corpus: ...


@dataclass(slots=True)
class Intake:
    """Takes traces into the store of an engine: matched to `corpus`, or to one made of their passages, which
    is named after the route. `route`: what the route is called; by default as the traces' service is.
    """

    engine: Opens
    corpus: str | None = None
    route: str | None = None
    progress: Progress = lambda _stage, _done, _total: None
    cancel: threading.Event | None = None

    def take(self, traces: Sequence[ForeignTrace]) -> ImportedTraces:
        """Store the runs of `traces` that are not stored yet. Raises BadInput where no trace has what a run
        needs, and what making the corpus raises.
        """
        store = self.engine.store
        if store is None:
            raise Unavailable("run storage is off, so traces cannot be imported")
        route = imported.named(traces, self.route)
        corpus = self._corpus(traces, route)
        known = store.present([imported.run_id(trace, corpus.name) for trace in traces])
        found = imported.imported(traces, corpus, route, known)
        store.add_runs(found.runs)
        return found

    def _corpus(self, traces: Sequence[ForeignTrace], route: str) -> Corpus:
        if self.corpus is not None:
            return self.engine.corpus(self.corpus)
        name = slug(f"{route.replace('_', '-')}-traces")
        hits = list(imported.returned(traces))
        if not hits:
            raise BadInput(
                "the traces have no text of a passage, so no corpus can be made of them; name the corpus of "
                "their passages with --corpus"
            )
        now = self.engine.settings
        returned_corpus.keep(now, name, hits, progress=self.progress, cancel=self.cancel)
        return self.engine.corpus(name)
