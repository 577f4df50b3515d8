"""The scores that people and judges gave to imported runs in other tools, as complaints marked with their
source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.domain.types import Run
from core.evaluation.labels import run_labels
from core.evaluation.labels.run_labels import Report
from core.store import Store
from core.store.trace_sources.values import VOCABULARY

_WORDS = VOCABULARY["feedback"]
HALF = 0.5  # of a score from 0 to 1, below which it is bad
MAX_WHO, MAX_NOTE = 64, 500


@dataclass(frozen=True, slots=True)
class FromFeedback:
    """The number of scores that became complaints, the number of all scores, and the label sets concerned."""

    added: int = 0
    of: int = 0
    sets: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Return that as a sentence; "" if there were no scores."""
        if not self.of:
            return ""
        where = f", in label set {' and '.join(self.sets)}" if self.sets else ""
        return f"{self.of} scores of other tools, {self.added} of them kept as complaints{where}."


def from_traces(store: Store, said: Sequence[tuple[Run, Mapping[str, Any]]]) -> FromFeedback:
    """Keep what is bad of `said` as complaints in the regression set of its corpus.

    A score whose name does not say whether more is better is left alone.
    """
    added, names = 0, dict[str, None]()
    for run, one in said:
        if not negative(one) or not run.results:
            continue
        name = run_labels.complaint_set(run.corpus)
        value = one["label"] or f"{one['value']:g}"
        note = f"{one['name']}: {value}. {one['note']}".strip()[:MAX_NOTE]
        who = " ".join(f"{one['source']}: {one['who'] or one['name']}".split())[:MAX_WHO]
        failure = "wrong answer" if any(part in one["name"].lower() for part in _WORDS["answer"]) else "other"
        kept = run_labels.report(store, name, Report(run, run.results[0].route, failure, who, note=note))
        added += not kept.again
        names[name] = None
    return FromFeedback(added, len(said), tuple(names))


def negative(one: Mapping[str, Any]) -> bool:
    """Return whether a score, as `core.store.trace_sources.values.said` returns it, is negative."""
    name, value, label = one["name"].lower(), one["value"], one["label"].strip().lower()
    if label:
        return label in _WORDS["bad"]
    if value is None:
        return False
    if any(part in name for part in _WORDS["thumbs"]):
        return bool(value <= 0)
    return bool(value < HALF) and any(part in name for part in _WORDS["quality"])
