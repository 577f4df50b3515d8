"""Fills a label set with passages to judge: the best of every route, of an evaluation, or of stored runs.

Pooling: Spärck Jones & van Rijsbergen 1975, "Report on the need for and provision of an 'ideal' information
retrieval test collection"; what no route found stays unjudged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Passage, Query, RouteResult, Run
from core.engine import availability
from core.engine.request import Request
from core.evaluation.dataset import UNDECIDED, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.origins import NEWEST
from core.evaluation.labels.types import Desk
from core.evaluation.labels_file import Documents
from core.routes.registry import pick, routes
from core.store.labels import Pooled

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.engine.job import Job
    from core.evaluation.experiment_store import Evaluation
    from core.store import Store

DEPTH = 10  # passages of each route
MAX_DEPTH = 100
CONTROLS = ("noise",)  # routes that return unrelated passages on purpose


@dataclass(frozen=True, slots=True)
class Added:
    """The result of a pooling: new passages, questions of the set that were found, questions that are not in
    the set, and hits whose text was missing.
    """

    new: int
    questions: int
    others: int = 0
    missing: int = 0


class Pooling(BackgroundJob):
    """Asks every question of a set of several routes, in a thread of its own; each question's passages are
    in the pool when it has ended. `failed`: route -> questions at which it gave no result; `new`: passages
    that were not in the pool.
    """

    kind = "pool"

    def __init__(
        self, engine: Engine, store: Store, desk: Desk, names: Sequence[str], depth: int = DEPTH
    ) -> None:
        self._questions = worth_labelling(desk.questions)
        super().__init__(desk.set.name, len(self._questions), engine.settings.home)
        self.name, self.corpus, self.routes, self.depth = desk.set.name, desk.set.corpus, tuple(names), depth
        self.new = 0
        self.failed: Counter[str] = Counter()
        self.why: dict[str, str] = {}  # by route, why it gave no result the first time
        self._engine, self._store = engine, store
        self._job: Job | None = None

    def cancel(self) -> None:
        """Stop; what was found for the questions before stays."""
        super().cancel()
        if self._job is not None:
            self._job.cancel()

    def _do(self) -> None:
        for question in self._questions:
            if self._cancel.is_set():
                break
            self._job = self._engine.start(Request(question.query, self.corpus, self.routes, stored=False))
            if self._cancel.is_set():  # asked for while the job was begun
                self._job.cancel()
            results = self._job.wait().results
            if self._cancel.is_set():
                break
            self._note(results)
            self.new += desks.add_to_pool(self._store, self.name, {question.id: best(results, self.depth)})
            self.finished += 1

    def _note(self, results: Sequence[RouteResult]) -> None:
        for result in results:
            if result.status != "ok":
                self.failed[result.route] += 1
                self.why.setdefault(result.route, result.error or result.status)


def begin(engine: Engine, name: str, names: Sequence[str] = (), *, depth: int = DEPTH) -> Pooling:
    """Begin to fill the pool of a set with the `depth` best passages of each route, or return the running
    job. Without `names`: the routes that can run and ask no language model. Raises BadInput for an unknown
    set or route or a depth that is not allowed, Unavailable if a route cannot run.
    """
    check_depth(depth)
    store = store_of(engine)
    desk = desks.load(store, name)
    chosen = runnable(engine, desk.set.corpus, names)
    key = str(store.path), desk.set.name
    return jobs.begin(Pooling, key, lambda: Pooling(engine, store, desk, chosen, depth))


def under_way(engine: Engine, name: str) -> Pooling | None:
    """Return the pooling of a set that this process began last: under way, or how it ended."""
    return jobs.latest(Pooling, (str(store_of(engine).path), name))


def defaults(engine: Engine, corpus: str) -> tuple[str, ...]:
    """Return the routes that can run on a corpus and ask no language model, without controls, which add
    passages on purpose that answer nothing, and without pipelines, which may search other documents.
    """
    gaps = availability.missing(engine, corpus)
    return tuple(
        one.name
        for one in routes().values()
        if one.name not in CONTROLS
        and not one.external
        and not one.asks()
        and not availability.why_not(one, gaps)
    )


def worth_labelling(questions: Iterable[Question]) -> list[Question]:
    """Return the questions that documents are asked for: not small talk, and none for tables."""
    return [one for one in questions if one.mode not in UNDECIDED]


def best(results: Iterable[RouteResult], depth: int) -> list[Pooled]:
    """Return the `depth` best passages of each result that ended well, each once, with who found it at what
    rank.
    """
    passages: dict[str, Passage] = {}
    found: dict[str, dict[str, int]] = {}
    for result in results:
        if result.status == "ok":
            for rank, hit in enumerate(result.hits[:depth], 1):
                passages.setdefault(hit.passage.id, hit.passage)
                found.setdefault(hit.passage.id, {}).setdefault(result.route, rank)
    return [Pooled(passages[id], tuple(ranks.items())) for id, ranks in found.items()]


def from_runs(store: Store, name: str, runs: Iterable[Run], *, depth: int = DEPTH) -> Added:
    """Fill the pool from runs that asked questions of the set, with the same turns before them; nothing is
    asked again.
    """
    check_depth(depth)
    desk = desks.load(store, name)
    same = _by_query(desk)
    found: dict[str, list[Pooled]] = {}
    others: set[Query] = set()
    for run in runs:
        if run.corpus != desk.set.corpus:
            raise BadInput(
                f"run {run.id} is over corpus {run.corpus}, and label set {name} over {desk.set.corpus}"
            )
        for id in same.get(run.query, ()):
            found.setdefault(id, []).extend(best(run.results, depth))
        if run.query not in same:
            others.add(run.query)
    return Added(desks.add_to_pool(store, name, found), len(found), len(others))


def from_sessions(store: Store, name: str, *, depth: int = DEPTH) -> Added:
    """`from_runs` of the newest stored runs that asked questions of the set; those with other turns before
    the same words are counted as others.
    """
    desk = desks.load(store, name)
    texts = {question.query.text for question in desk.questions}
    rows = store.sessions(corpus=desk.set.corpus, limit=NEWEST)
    return from_runs(store, name, (store.load(row.id) for row in rows if row.question in texts), depth=depth)


def from_evaluation(
    store: Store,
    name: str,
    evaluation: Evaluation,
    corpus: Documents,
    *,
    names: Sequence[str] = (),
    depth: int = DEPTH,
) -> Added:
    """Fill the pool from the hits of routes (`names`, or all) in a saved evaluation; no route is rerun.

    Questions are the same if they ask the same after the same turns, whatever their ids. The text of a
    passage that `corpus` has no more is that of the evaluation's run, if it kept one.
    """
    check_depth(depth)
    if unknown := [route for route in names if route not in evaluation.routes]:
        raise BadInput(
            f"evaluation {evaluation.name} has no route {unknown[0]!r}; "
            f"it has: {', '.join(evaluation.routes)}"
        )
    desk = desks.load(store, name)
    over = evaluation.spec.get("corpus")
    if over != desk.set.corpus:
        raise BadInput(
            f"evaluation {evaluation.name} is over corpus {over}, and label set {name} over {desk.set.corpus}"
        )
    same = _by_query(desk)
    asked = {id: same.get(q.query, []) for id, q in evaluation.questions.items() if id in evaluation.outcomes}
    ranked = {id: _ranks(evaluation, id, names, depth) for id, own in asked.items() if own}
    texts: Mapping[str, Passage] = corpus.by_ids(sorted({one for ranks in ranked.values() for one in ranks}))
    found: dict[str, list[Pooled]] = {}
    missing = 0
    for id, ranks in ranked.items():
        known = texts
        if evaluation.run_id(id) and any(passage not in texts for passage in ranks):
            known = {**evaluation.run(id).passages, **texts}
        missing += sum(passage not in known for passage in ranks)
        passages = [Pooled(known[p], tuple(r.items())) for p, r in ranks.items() if p in known]
        for own in asked[id]:
            found.setdefault(own, []).extend(passages)
    others = sum(not own for own in asked.values())
    return Added(desks.add_to_pool(store, name, found), len(found), others, missing)


def check_depth(depth: int) -> None:
    """Raise BadInput unless `depth` is allowed."""
    if type(depth) is not int or not 1 <= depth <= MAX_DEPTH:
        raise BadInput(f"depth={depth!r}; give 1 to {MAX_DEPTH} passages per route")


def _by_query(desk: Desk) -> dict[Query, list[str]]:
    found: dict[Query, list[str]] = {}
    for question in desk.questions:
        found.setdefault(question.query, []).append(question.id)
    return found


def _ranks(
    evaluation: Evaluation, question: str, names: Sequence[str], depth: int
) -> Mapping[str, dict[str, int]]:
    """Return passage -> route -> rank from 1."""
    found: dict[str, dict[str, int]] = {}
    for route, outcome in evaluation.outcomes[question].items():
        if outcome.status == "ok" and (not names or route in names):
            for rank, (passage, _) in enumerate(outcome.hits[:depth], 1):
                found.setdefault(passage, {}).setdefault(route, rank)
    return found


def runnable(engine: Engine, corpus: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named routes, or the `defaults` without names. Raises Unavailable if a route cannot run."""
    if not names:
        return defaults(engine, corpus)
    chosen, gaps = pick(list(names)), availability.missing(engine, corpus)
    for route in chosen:
        if why := availability.why_not(route, gaps):
            raise Unavailable(f"{route.name} cannot run: {why}")
    return tuple(route.name for route in chosen)


def store_of(engine: Engine) -> Store:
    """Return the store of an engine's labels. Raises Unavailable if nothing is stored."""
    if engine.store is None:
        raise Unavailable("labels are stored with the sessions, and sessions are not stored here")
    return engine.store
