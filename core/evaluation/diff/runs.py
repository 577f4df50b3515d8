"""The documents that displaced a passage since a question was asked of an earlier state of the corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.corpus import states
from core.evaluation.diff.questions import DisplacedPassage, displaced
from core.evaluation.outcome import Outcome

if TYPE_CHECKING:
    from core.corpus.states import DocumentChange
    from core.domain.settings import Settings
    from core.domain.types import RouteResult, Run
    from core.store import Store

LOOKED_AT = 50  # earlier runs with the words of the question


@dataclass(frozen=True, slots=True)
class EarlierState:
    """The newest earlier run of a question whose corpus had another state, and the documents that differ."""

    run: Run
    documents: Mapping[str, DocumentChange]

    def displaced(self, now: Run, relevant: Iterable[str], depth: int) -> dict[str, list[DisplacedPassage]]:
        """Return each route's passages that new or changed documents displaced; see `questions.displaced`."""
        before = {one.route: one for one in self.run.results}
        relevant = list(relevant)
        found = {
            after.route: displaced(
                relevant, _outcome(before[after.route]), _outcome(after), depth, self.documents
            )
            for after in now.results
            if after.route in before
        }
        return {route: list(some) for route, some in found.items() if some}


def earlier_state(store: Store, run: Run, settings: Settings) -> EarlierState | None:
    """Return the last earlier state of the corpus in which the question of `run` was asked; None without one
    whose documents are known.
    """
    now = states.kept(run.corpus, run.fingerprint, settings)
    if now is None:
        return None
    for row in store.sessions(run.query.text, corpus=run.corpus, limit=LOOKED_AT):
        if row.created >= run.created or row.question != run.query.text:
            continue
        before = store.load(row.id)
        if before.query != run.query or before.fingerprint == run.fingerprint:
            continue
        then = states.kept(run.corpus, before.fingerprint, settings)
        if then is not None and then.items() & now.items():  # else they were split differently
            return EarlierState(before, states.changes(then, now))
    return None


def _outcome(result: RouteResult) -> Outcome:
    return Outcome(
        result.status,
        result.ms,
        [(hit.passage.id, hit.score) for hit in result.hits],
        documents={hit.passage.id: hit.passage.doc_id for hit in result.hits},
    )
