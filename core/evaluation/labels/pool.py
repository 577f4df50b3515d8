"""Fills a label set with passages to judge: the best of every route, of an evaluation, or of runs.

Pooling: Spärck Jones & van Rijsbergen 1975, "Report on the need for and provision of an 'ideal' information
retrieval test collection"; what no route found stays unjudged.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.corpus import catalogue
from core.corpus.corpus import Corpus
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Unavailable, shortened
from core.domain.types import Passage, Query, RouteResult, Run
from core.engine import availability
from core.evaluation import dataset, sets
from core.evaluation.dataset import UNDECIDED, Question, Written
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.question_formats import column_names
from core.evaluation.question_rows import ENDINGS, rows
from core.evaluation.runner import Plan, ask
from core.routes.registry import pick
from core.store.codec import dumps, to_bytes
from core.store.labels import Pooled

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.engine.engine import Engine
    from core.evaluation.experiment_store import Evaluation
    from core.store import Store

DEPTH = 10  # passages of each route
MAX_DEPTH = 100
CONTROLS = ("noise",)  # routes that return unrelated passages on purpose
SAMPLE = 100  # questions: what two people label in a day


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

    def _do(self) -> None:
        plan = Plan(self.corpus, self.routes)
        for question in self._questions:
            request = plan.request(question.query)
            run = None if self._cancel.is_set() else ask(self._engine, request, self._cancel.is_set)
            if run is None:
                break
            for result in run.results:
                if result.status != "ok":
                    self.failed[result.route] += 1
                    self.why.setdefault(result.route, result.error or result.status)
            self.new += desks.add_to_pool(
                self._store, self.name, {question.id: best(run.results, self.depth)}
            )
            self.finished += 1


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
    found = availability.without_model(engine, corpus)
    return tuple(one.name for one in found if one.name not in CONTROLS and not one.external)


def worth_labelling(questions: Iterable[Question]) -> list[Question]:
    """Return the questions that documents are asked for: not small talk, and none for tables."""
    return [one for one in questions if one.mode not in UNDECIDED]


def best(results: Iterable[RouteResult], depth: int) -> list[Pooled]:
    """Return the `depth` best passages of each result that ended well, each once, with who found it at what
    rank.
    """
    ended = [result for result in results if result.status == "ok"]
    passages = {hit.passage.id: hit.passage for result in ended for hit in result.hits[:depth]}
    found = ranks((result.route, [hit.passage.id for hit in result.hits[:depth]]) for result in ended)
    return [Pooled(passages[id], tuple(by.items())) for id, by in found.items()]


def ranks(lists: Iterable[tuple[str, Iterable[str]]]) -> dict[str, dict[str, int]]:
    """Return passage -> route -> its rank from 1, of (route, passages in order)."""
    found: dict[str, dict[str, int]] = {}
    for route, ids in lists:
        for rank, id in enumerate(ids, 1):
            found.setdefault(id, {}).setdefault(route, rank)
    return found


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
    corpus: Corpus,
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
    ranked = {
        id: ranks(
            (route, [passage for passage, _ in outcome.hits[:depth]])
            for route, outcome in evaluation.outcomes[id].items()
            if outcome.status == "ok" and (not names or route in names)
        )
        for id, own in asked.items()
        if own
    }
    texts = texts_of(evaluation, corpus, ranked)
    found: dict[str, list[Pooled]] = {}
    for id, by in ranked.items():
        passages = [Pooled(texts[p], tuple(at.items())) for p, at in by.items() if p in texts]
        for own in asked[id]:
            found.setdefault(own, []).extend(passages)
    missing = sum(passage not in texts for by in ranked.values() for passage in by)
    others = sum(not own for own in asked.values())
    return Added(desks.add_to_pool(store, name, found), len(found), others, missing)


def texts_of(
    evaluation: Evaluation, corpus: Corpus, wanted: Mapping[str, Collection[str]]
) -> dict[str, Passage]:
    """Return the passages that are `wanted` of each question: as the corpus has them, else as the
    evaluation's runs kept them.
    """
    texts = dict(corpus.by_ids(sorted({id for passages in wanted.values() for id in passages})))
    for question, passages in wanted.items():
        if evaluation.run_id(question) and any(id not in texts for id in passages):
            texts = {**evaluation.run(question).passages, **texts}
    return texts


def from_requests(
    store: Store, name: str, runs: Sequence[Run], *, sample: int = SAMPLE, seed: int = 13
) -> int:
    """Make a label set of up to `sample` different questions of `runs`, drawn with `seed`, in the order in
    which they were asked; return their number. What the runs found for them is in its pool.
    """
    if sample < 1:
        raise BadInput(f"a sample of {sample} questions; give 1 or more")
    asked = list(dict.fromkeys(run.query for run in runs if len(run.query.text) <= desks.MAX_QUESTION))
    if not asked:
        raise BadInput("no question to make a label set of was imported")
    chosen = set(random.Random(seed).sample(range(len(asked)), min(sample, len(asked))))
    questions = [Question(id_of(query), query) for at, query in enumerate(asked) if at in chosen]
    desks.create(store, name, runs[0].corpus, questions)
    wanted = {question.query for question in questions}
    from_runs(store, name, [run for run in runs if run.query in wanted])
    return len(questions)


def check_depth(depth: int) -> None:
    """Raise BadInput unless `depth` is allowed."""
    if type(depth) is not int or not 1 <= depth <= MAX_DEPTH:
        raise BadInput(f"depth={depth!r}; give 1 to {MAX_DEPTH} passages per route")


def _by_query(desk: Desk) -> dict[Query, list[str]]:
    found: dict[Query, list[str]] = {}
    for question in desk.questions:
        found.setdefault(question.query, []).append(question.id)
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


@dataclass(frozen=True, slots=True)
class Share:
    """The share of one route: its passages in the pool, and those that no other route found."""

    route: str
    found: int
    alone: int


def shares(desk: Desk) -> tuple[Share, ...]:
    """Return the share of each route in the pool of a set, the largest first."""
    finders = [
        {route for route, _ in one.found} for passages in desk.pool.values() for one in passages.values()
    ]
    found = Counter(route for routes in finders for route in routes)
    alone = Counter(route for routes in finders if len(routes) == 1 for route in routes)
    ordered = sorted(found, key=lambda route: (-found[route], route))
    return tuple(Share(route, found[route], alone[route]) for route in ordered)


NEWEST = 1000  # runs that are looked through for questions
CELL = 200  # characters of a cell in a preview


def of_corpus(corpus: str, settings: Settings) -> tuple[Question, ...]:
    """Return the questions that come with a corpus, of all splits. Raises BadInput if it has none.

    Their labels are not taken over: who judges is not to know them.
    """
    origin = catalogue.source(corpus, settings=settings, known_only=True)
    return sets.read(origin.name, origin.path, split="all").questions


def of_file(name: str, content: bytes, columns: Mapping[str, str] | None = None) -> Written:
    """Read the questions and labels of an uploaded file. Raises BadInput naming the line."""
    with _saved(name, content) as path:
        return dataset.written([path], name=name, columns=columns)


def first_rows(name: str, content: bytes, count: int) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns of an uploaded file and its first rows. Raises BadInput as `of_file`."""
    with _saved(name, content) as path:
        found = [*rows(path)]
    shown = [{key: shortened(str(cell), CELL) for key, cell in row.items()} for _, row in found[:count]]
    return column_names(found), shown


def keep(name: str, content: bytes, settings: Settings) -> Path:
    """Store an uploaded file of questions in the home folder, so that an evaluation can read it again."""
    digest = hashlib.sha256(content).hexdigest()[:12]
    path = settings.home / "questions" / digest / re.sub(r"[^\w.-]+", "-", Path(name).name)[-80:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@contextmanager
def _saved(name: str, content: bytes) -> Iterator[Path]:
    """Yield the content as a file; errors about it have the name it was uploaded by."""
    ending = Path(name).suffix.lower()
    if ending not in ENDINGS:
        raise BadInput(f"{name!r}: give a file ending in one of {', '.join(ENDINGS)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"questions{ending}"
        path.write_bytes(content)
        try:
            yield path
        except BadInput as error:
            raise BadInput(str(error).replace(str(path), name)) from None


def of_lines(text: str) -> tuple[Question, ...]:
    """Read pasted questions, one a line; each once."""
    asked = dict.fromkeys(" ".join(line.split()) for line in text.splitlines())
    return tuple(Question(id_of(Query(one)), Query(one)) for one in asked if one)


def about(written: Written) -> list[str]:
    """Describe how a file was read, before its labels are matched to a corpus."""
    some = sum(bool(entries) for entries in written.evidence.values())
    read = f"Read as {written.format}: {len(written.questions):,} questions, {some:,} with labels"
    return [*([read] if written.format else []), *written.remarks]


def of_sessions(store: Store, corpus: str) -> tuple[Question, ...]:
    """Return the questions of a corpus' newest `NEWEST` runs, each with its conversation once, the newest
    first. The id is a hash of both, so it is the same wherever the question is asked again.
    """
    asked = store.asked(corpus, NEWEST)
    return tuple(Question(id_of(query), query) for query in asked if query.text.strip())


def id_of(query: Query) -> str:
    """Return the id of a question that was asked, made of its text and the turns before it."""
    whole = dumps([query.text, *([turn.role, turn.text] for turn in query.history)])
    return "asked-" + hashlib.sha256(to_bytes(whole)).hexdigest()[:12]
