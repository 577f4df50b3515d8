"""Sorts questions of real traffic by how much labels of them would decide: those first on which candidate
routes rank other passages than were shown, and than each other.

Source of the measure: Webber, Moffat & Zobel 2010, "A Similarity Measure for Indefinite Rankings".
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from math import inf
from statistics import fmean
from typing import Any

from core.analysis.rank_overlap import rbo
from core.corpus.corpus import Corpus
from core.domain import people
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import Cancelled
from core.domain.rank_changes import ranks
from core.domain.relevance import is_unmatched
from core.domain.types import Passage, Query, Run
from core.engine.engine import Engine
from core.engine.imported import imported, question
from core.evaluation import runner
from core.evaluation.calibration import NO_LOOK_UP
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment import conditions_of
from core.evaluation.finding import Finding
from core.evaluation.labels import desk as desks
from core.evaluation.labels import pool
from core.evaluation.labels.desk import MAX_QUESTION
from core.evaluation.labels.pool import id_of
from core.evaluation.labels.run_labels import complaint_sets, negative
from core.evaluation.labels.settled import SHOWN, beyond_shown
from core.evaluation.outcome import Journal, Outcome
from core.store import Store
from core.store.codec import dumps, to_bytes
from core.store.labels import LabelSet, LabelStore, Pooled, now
from core.store.trace_sources.values import FEEDBACK
from core.store.traces_in import ForeignTrace

TOP = 10  # passages of a ranking that are compared
PERSISTENCE = 0.9  # the first 10 ranks then decide 86% of the overlap
LEAST = 20  # questions; the order of fewer says little about traffic
STORED = 10_000  # traces of a store that are read
EQUAL = 1e-9  # a smaller disagreement is rounding
SESSION = ("session.id", "langfuse.session.id")
USER = ("user.id", "langfuse.user.id", "enduser.id")
Progress = Callable[[str, int, int], None]  # (what is done, how many, of how many)


@dataclass(frozen=True, slots=True)
class TrafficRequest:
    """A request that another program answered: `runs` have the passages it showed; none if its trace has
    none. `complained`: whether a score or a person called the answer bad.
    """

    text: str
    runs: Sequence[Run]
    complained: bool = False
    user: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a replay may use; None for no limit. What is under way when it is used up is finished,
    except in the case of `seconds`.
    """

    questions: int | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class TrafficQuestion:
    """A question of traffic: how often it was asked, how often someone complained, and each list shown."""

    query: Query
    count: int = 0
    complaints: int = 0
    shown: list[list[str]] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)  # those shown, by id

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


def of_traces(traces: Sequence[ForeignTrace], corpus: Corpus) -> Iterator[TrafficRequest]:
    """Yield the requests of traces that are not stored, their passages matched to `corpus`."""
    for trace in traces:
        said = [one for span in trace.spans for one in span.attributes.get(FEEDBACK) or ()]
        user, session = (next((v for s in trace.spans if (v := s.text(*n))), "") for n in (USER, SESSION))
        runs = imported([trace], corpus, SHOWN).runs
        yield TrafficRequest(question(trace), runs, any(map(negative, said)), user, session)


def of_store(store: Store, corpus: str) -> Iterator[TrafficRequest]:
    """Yield the requests of a corpus that `import` stored, the newest `STORED`."""
    asked = (known for desk in complaint_sets(store, corpus) for known in desk.questions)
    complained = {one.run for known in asked for one in known.complaints}
    for id in store.ids(corpus=corpus, source="trace")[:STORED]:
        run = store.load(id)
        yield TrafficRequest(
            run.query.text, [run], id in complained, session=run.settings.get("conversation", "")
        )


def read_traffic(
    recorded: Iterable[TrafficRequest], corpus: Corpus, progress: Progress = lambda _what, _done, _of: None
) -> tuple[list[TrafficQuestion], list[str]]:
    """Return the different questions of traffic with the passages shown, the most frequent first, and
    warnings.
    """
    found: dict[str, TrafficQuestion] = {}
    counted: Counter[str] = Counter()
    users, sessions = set[str](), set[str]()
    for done, request in enumerate(recorded, 1):
        users.add(request.user)
        sessions.add(request.session)
        text = " ".join(request.text.split())
        if not text or len(text) > MAX_QUESTION:
            counted["without"] += 1
            continue
        one = found.setdefault(text.casefold(), TrafficQuestion(Query(text)))
        one.count += 1
        one.complaints += request.complained
        results = [result for run in request.runs for result in run.results]
        known = [
            ids for ids in (list(ranks(r.hits))[:TOP] for r in results) if not all(map(is_unmatched, ids))
        ]
        for run in request.runs:
            one.passages |= run.passages
        one.shown += known
        counted["bare"] += not known
        counted["shown"] += sum(map(len, known))
        counted["unmatched"] += sum(is_unmatched(id) for ids in known for id in ids)
        progress("read traces", done, 0)
    warnings = []
    for what, values in (("user", users), ("session", sessions)):
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
    return sorted(found.values(), key=lambda one: -one.count), warnings


def triage(
    engine: Engine,
    corpus: Corpus,
    recorded: Iterable[TrafficRequest],
    routes: Sequence[str],
    *,
    budget: Budget | None = None,
    label_set: str | None = None,
    progress: Progress = lambda _what, _done, _of: None,
    cancel: threading.Event | None = None,
) -> dict[str, Any]:
    """Ask the questions of traffic through `routes`, and return those on which rankings differ, the most
    decisive first, as JSON values. If `cancel` is set or the `budget` used up, the questions asked so far are
    compared. With `label_set`, the rankings are stored, so that the next call asks only what is left, and
    the questions that differ from what was shown are added to this set, with the passages to grade.
    """
    cancel, budget, began = cancel or threading.Event(), budget or Budget(), time.perf_counter()
    traffic, warnings = read_traffic(recorded, corpus, progress)
    plan = runner.Plan(corpus.name, tuple(routes))
    conditions = conditions_of(plan, engine)
    folder = engine.settings.home / "traffic" / hashlib.sha256(to_bytes(dumps(conditions))).hexdigest()[:16]
    new: list[Outcome] = []
    used, room = Counter[str](), budget.questions or len(traffic)

    def ended() -> bool:
        return cancel.is_set() or time.perf_counter() - began > (budget.seconds or inf)

    with nullcontext() if label_set is None else Journal.open(folder, conditions) as journal:
        before = set(journal.done) if journal else set[str]()

        def within(question: Question, by: Mapping[str, Outcome]) -> bool:
            """Count what a question used, and return whether there are tokens for another."""
            if question.id not in before:
                new.extend(by.values())
                used["questions"] += 1
                used["tokens"] += sum(outcome.tokens for outcome in by.values())
            return used["tokens"] < (budget.tokens or inf)

        asked: list[TrafficQuestion] = []
        talk: list[TrafficQuestion] = []
        for done, one in enumerate(traffic, 1):
            if id_of(one.query) in before:
                asked.append(one)
            elif room > 0 and not ended():
                is_talk = _is_talk(engine, corpus, one.query, cancel)
                (talk if is_talk else asked).append(one)
                room -= not is_talk
            progress("look for small talk", done, len(traffic))
        outcomes, _ = runner.run(
            engine,
            LabelledSet("traffic", tuple(Question(id_of(one.query), one.query) for one in asked), {}),
            plan,
            journal=journal,
            ended=ended,
            after=within,
            progress=lambda done, of: progress("ask questions", done, of),
        )
    if talk:
        warnings.append(f"left out as small talk: {len(talk)}, such as {talk[0].query.text[:80]!r}")
    if (of := len(traffic) - len(talk)) > len(outcomes):
        warnings.append(f"stopped after {len(outcomes)} of {of} questions; the rest is not compared")
    rows, lists = [], []
    failed: Counter[str] = Counter()
    for one in asked:
        by = outcomes.get(id_of(one.query), {})
        ended_well = {route: outcome for route, outcome in by.items() if outcome.status == "ok"}
        failed.update(by.keys() - ended_well.keys())
        found = {route: [id for id, _ in outcome.hits[:TOP]] for route, outcome in ended_well.items()}
        rows.append(one.compare(found))
        lists.append((one, found))
    warnings += [f"{route} failed on {count} questions, not compared" for route, count in failed.items()]
    compared = [row for row in rows if row["decisive"] is not None]
    if len(compared) < min(len(rows), len(outcomes)):
        warnings.append("questions with a single ranking have nothing to be compared with, and are left out")
    differing = [row for row in compared if row["decisive"] > EQUAL]
    calls = [call for outcome in new for call in outcome.asked]
    document = {
        "corpus": corpus.name,
        "routes": list(routes),
        "traces": sum(one.count for one in traffic),
        "questions": len(traffic),
        "same": len(compared) - len(differing),
        "to_label": sorted(differing, key=lambda row: (-round(row["decisive"], 9), -row["complaints"])),
        "replay": {
            "asked": used["questions"],
            "asked_before": len(outcomes) - used["questions"],
            "tokens": used["tokens"],
            "calls": len(calls),
            "cached_calls": sum(bool(call.made) for call in calls),
            "seconds": round(time.perf_counter() - began, 1),
        },
        "warnings": warnings,
    }
    if label_set is not None:
        store, ids = pool.store_of(engine), {row["id"] for row in differing}
        beyond = keep(store, label_set, corpus, [one for one in lists if id_of(one[0].query) in ids])
        document |= {"label_set": label_set, "beyond_shown": list(map(asdict, beyond))}
    return document


def _is_talk(engine: Engine, corpus: Corpus, query: Query, cancel: threading.Event) -> bool:
    """Return whether the question classifier finds that no documents are needed. On `support` it does so for
    9 of the 10 small-talk messages and 4 of the 188 questions.
    """
    steps = engine.steps(corpus, cancel)
    try:
        return steps.classify(query).decision == NO_LOOK_UP
    except Cancelled:  # the replay that follows stops and reports it
        return False


def keep(
    store: Store,
    name: str,
    corpus: Corpus,
    differing: Sequence[tuple[TrafficQuestion, Mapping[str, list[str]]]],
) -> list[Finding]:
    """Add questions that differ to the label set `name`, which is created if it does not exist, with the
    passages shown and found as those to grade. Return what the grades in the set show so far.

    Questions whose traces do not record the passages shown are left out, unless no trace records any.
    """
    some = [(one, by) for one, by in differing if one.shown] or list(differing)
    texts = corpus.by_ids(sorted({id for _, by in some for ids in by.values() for id in ids}))
    passages: dict[str, list[Pooled]] = {}
    for one, by in some:
        every = {**texts, **one.passages}
        found = pool.ranks([*((SHOWN, ids) for ids in one.shown[-1:]), *by.items()])
        pooled = [Pooled(every[id], tuple(at.items())) for id, at in found.items() if id in every]
        passages[id_of(one.query)] = pooled

    def work(labels: LabelStore) -> None:
        desk = desks.existing(labels, name, corpus.name)
        known = desk.asked if desk else {}
        asked = [
            replace(known.get(id_of(one.query)) or Question(id_of(one.query), one.query), count=one.count)
            for one, _ in some
        ]
        documents = list(map(desks.document, desks.clean_questions(asked)))
        if desk is None:
            fresh = LabelSet(name, corpus.name, desks.DEFAULT, desks.RELEVANT_FROM, now())
            labels.create(fresh, documents)
        for document in documents if desk else ():
            labels.keep_question(name, document)
        labels.add_to_pool(name, passages)

    if not some:
        return []
    people.require("edit")
    store.change_labels(work, deed=("label set filled from traffic", name))
    return beyond_shown(desks.load(store, name))


class Shadow(BackgroundJob):
    """Replays the stored traffic of a corpus through routes in the background; see `triage`."""

    kind = "replay of traffic"

    def __init__(
        self, engine: Engine, corpus: str, routes: Sequence[str], label_set: str, budget: Budget
    ) -> None:
        super().__init__(label_set, 0, engine.settings.home)
        self.document: dict[str, Any] = {}
        self._engine, self._corpus, self._routes, self._budget = engine, corpus, tuple(routes), budget

    def _do(self) -> None:
        engine = self._engine
        recorded = of_store(pool.store_of(engine), self._corpus)
        self.document = triage(
            engine,
            engine.corpus(self._corpus),
            recorded,
            self._routes,
            budget=self._budget,
            label_set=self.title,
            progress=self._follow,
            cancel=self._cancel,
        )

    def _follow(self, stage: str, done: int, total: int) -> None:
        self.stage, self.finished, self.total = stage, done, total


def begin(engine: Engine, corpus: str, routes: Sequence[str], label_set: str, budget: Budget) -> Shadow:
    """Begin to replay the stored traffic of a corpus, or return the running job. Raises Unavailable if a
    route cannot run.
    """
    chosen = pool.runnable(engine, corpus, routes)
    return jobs.begin(
        Shadow, (engine.settings.home, label_set), lambda: Shadow(engine, corpus, chosen, label_set, budget)
    )


def under_way(engine: Engine, label_set: str) -> Shadow | None:
    """Return the replay into a label set that this process began last."""
    return jobs.latest(Shadow, (engine.settings.home, label_set))
