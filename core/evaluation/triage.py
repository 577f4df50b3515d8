"""Sorts questions of real traffic by how much labels of them would decide: those first on which candidate
routes rank other passages than were shown, and than each other.

Source of the measure: Webber, Moffat & Zobel 2010, "A Similarity Measure for Indefinite Rankings".
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from core.analysis.rank_overlap import rbo
from core.domain.errors import Cancelled
from core.domain.rank_changes import ranks
from core.domain.relevance import is_unmatched
from core.domain.types import Query
from core.engine.imported import imported, question
from core.evaluation import runner
from core.evaluation.calibration import NO_LOOK_UP
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.labels.desk import MAX_QUESTION
from core.evaluation.labels.pool import id_of
from core.evaluation.labels.run_labels import negative
from core.steps import Memo, Steps
from core.steps.trace import Trace
from core.store.trace_sources.values import FEEDBACK

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.engine.engine import Engine
    from core.store.traces_in import ForeignTrace

TOP = 10  # passages of a ranking that are compared
PERSISTENCE = 0.9  # the first 10 ranks then decide 86% of the overlap
LEAST = 20  # questions; the order of fewer says little about traffic
EQUAL = 1e-9  # a smaller disagreement is rounding
SESSION = ("session.id", "langfuse.session.id")
USER = ("user.id", "langfuse.user.id", "enduser.id")
Progress = Callable[[str, int, int], None]  # (what is done, how many, of how many)


@dataclass(slots=True)
class TrafficQuestion:
    """A question of traffic: how often it was asked, how often someone complained, and each list shown."""

    query: Query
    count: int = 0
    complaints: int = 0
    shown: list[list[str]] = field(default_factory=list)

    def compare(self, found: Mapping[str, list[str]]) -> dict[str, Any]:
        """Compare the rankings `found` by each route with those shown, and with each other, as JSON values.

        `decisive` is the mean disagreement (1 - rank-biased overlap) of all these pairs times `count`; None
        if there is no pair.
        """
        shown = self.shown
        means = {route: fmean(similarity(ids, one) for one in shown) for route, ids in found.items() if shown}
        pairs = [similarity(one, other) for one, other in combinations(found.values(), 2)]
        alike = [*means.values(), *pairs]
        return {
            "question": self.query.text,
            "id": id_of(self.query),
            "count": self.count,
            "complaints": self.complaints,
            "decisive": self.count * (1 - fmean(alike)) if alike else None,
            "overlap": means,
            "between": fmean(pairs) if pairs else None,
            "differs": self._differing(found),
        }

    def _differing(self, found: Mapping[str, list[str]]) -> list[str]:
        """Return the passages that only routes found or that only were shown, without lists shown those that
        not all routes found: at most `TOP`, the best ranks first.
        """
        best: dict[str, int] = {}
        for rank, id in sorted(pair for ids in (*found.values(), *self.shown) for pair in enumerate(ids)):
            best.setdefault(id, rank)
        theirs = {id for ids in found.values() for id in ids}
        common = set.intersection(*map(set, found.values())) if found else set()
        apart = theirs ^ {id for ids in self.shown for id in ids} if self.shown else theirs - common
        return sorted(apart, key=lambda id: (best[id], id))[:TOP]


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the rank-biased overlap of two lists; two empty ones are equal."""
    return 1.0 if one == other else rbo(one, other, PERSISTENCE)


def read_traffic(
    traces: Sequence[ForeignTrace], corpus: Corpus, progress: Progress = lambda _what, _done, _of: None
) -> tuple[list[TrafficQuestion], list[str]]:
    """Return the different questions of traces with the passages shown, matched to `corpus`, and warnings."""
    found: dict[str, TrafficQuestion] = {}
    counted: Counter[str] = Counter()
    for done, trace in enumerate(traces, 1):
        text = " ".join(question(trace).split())
        if not text or len(text) > MAX_QUESTION:
            counted["without"] += 1
            continue
        one = found.setdefault(text.casefold(), TrafficQuestion(Query(text)))
        one.count += 1
        one.complaints += any(
            negative(said) for s in trace.spans for said in s.attributes.get(FEEDBACK) or ()
        )
        shown = [
            list(ranks(result.hits))[:TOP]
            for run in imported([trace], corpus, "shown").runs
            for result in run.results
        ]
        known = [ids for ids in shown if not all(map(is_unmatched, ids))]
        one.shown += known
        counted["bare"] += not known
        counted["shown"] += sum(map(len, known))
        counted["unmatched"] += sum(is_unmatched(id) for ids in known for id in ids)
        progress("read traces", done, len(traces))
    warnings = []
    for what, names in (("user", USER), ("session", SESSION)):
        values = {next((v for span in one.spans if (v := span.text(*names))), "") for one in traces}
        if len(values) == 1 and "" not in values:
            warnings.append(f"all traces are of one {what}: they say little about others")
    if len(found) < LEAST:
        warnings.append(f"{len(found)} different questions: fewer than {LEAST} say little about traffic")
    if counted["without"]:
        warnings.append(f"{counted['without']} traces without a usable question are left out")
    if counted["unmatched"]:
        few = f"{counted['unmatched']} of {counted['shown']} shown passages"
        warnings.append(f"{few} are not in corpus {corpus.name}: they count as different")
    if counted["bare"]:
        what = f"{counted['bare']} traces show no passage of corpus {corpus.name}"
        warnings.append(f"{what}: their questions are compared between candidates only")
    return list(found.values()), warnings


def triage(
    engine: Engine,
    corpus: Corpus,
    traces: Sequence[ForeignTrace],
    routes: Sequence[str],
    *,
    progress: Progress = lambda _what, _done, _of: None,
    cancel: threading.Event | None = None,
) -> dict[str, Any]:
    """Ask the questions of `traces` through `routes`, and return those on which rankings differ, the most
    decisive first, as JSON values. If `cancel` is set, the questions asked so far are compared.
    """
    cancel = cancel or threading.Event()
    traffic, warnings = read_traffic(traces, corpus, progress)
    asked: list[TrafficQuestion] = []
    talk: list[str] = []
    for done, one in enumerate(traffic, 1):
        steps = Steps(engine.context(corpus, None, Trace("triage"), Memo(), cancel))
        # The classifier of questions sees no need for documents: so it does of 9 of the 10 messages of
        # `support` that are small talk, and of 4 of its 188 questions.
        kind = ""
        with suppress(Cancelled):  # reported below
            kind = "" if cancel.is_set() else steps.classify(one.query).decision
        if kind == NO_LOOK_UP:
            talk.append(one.query.text[:80])
        else:
            asked.append(one)
        progress("look for small talk", done, len(traffic))
    if talk:
        warnings.append(f"left out as small talk: {len(talk)}, such as {talk[0]!r}")
    outcomes, whole = runner.run(
        engine,
        LabelledSet("traffic", tuple(Question(id_of(one.query), one.query) for one in asked), {}),
        runner.Plan(corpus.name, tuple(routes)),
        ended=cancel.is_set,
        progress=lambda done, of: progress("ask questions", done, of),
    )
    if not whole:
        warnings.append(f"stopped after {len(outcomes)} of {len(asked)} questions; the rest is not compared")
    rows = []
    failed: Counter[str] = Counter()
    for one in asked:
        by = outcomes.get(id_of(one.query), {})
        ended = {route: outcome for route, outcome in by.items() if outcome.status == "ok"}
        failed.update(by.keys() - ended.keys())
        found = {route: [id for id, _ in outcome.hits[:TOP]] for route, outcome in ended.items()}
        rows.append(one.compare(found))
    warnings += [f"{route} failed on {count} questions, not compared" for route, count in failed.items()]
    compared = [row for row in rows if row["decisive"] is not None]
    if len(compared) < min(len(rows), len(outcomes)):
        warnings.append("questions with a single ranking have nothing to be compared with, and are left out")
    differing = [row for row in compared if row["decisive"] > EQUAL]
    return {
        "corpus": corpus.name,
        "routes": list(routes),
        "traces": len(traces),
        "questions": len(traffic),
        "same": len(compared) - len(differing),
        "to_label": sorted(differing, key=lambda row: (-round(row["decisive"], 9), -row["complaints"])),
        "warnings": warnings,
    }
