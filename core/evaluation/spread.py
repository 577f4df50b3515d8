"""Workers that ask the questions of an evaluation: the payloads they receive, and their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from core.backends import fusion_weights
from core.backends.external import run_files
from core.backends.workers.place import WorkPlace
from core.domain.errors import BadInput, Cancelled, RouteScopeError, Unavailable
from core.domain.machine import Machine, here
from core.domain.needs import Need
from core.domain.pipelines import Pipeline
from core.domain.types import Query, Run
from core.engine.availability import missing
from core.engine.engine import Engine
from core.evaluation.dataset import Question
from core.evaluation.runner import Ended, Plan, ask
from core.routes.registry import add, pick, pipelines
from core.store.codec import dumps, from_document, to_bytes, to_document, to_text

if TYPE_CHECKING:
    from core.backends.workers.pool import Pool
    from core.domain.settings import Settings

TASK = f"{__name__}:asked"
CHOSEN = ("calibrations", "routers", "evaluators", fusion_weights.FOLDER)  # folders of a home
Answered = tuple[Question, Run, Machine]


class Spread:
    """The workers of a place, started or connected to when the first question is asked."""

    def __init__(self, place: WorkPlace, engine: Engine) -> None:
        self._place, self._engine = place, engine
        self._pool: Pool | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection, and end the workers of this machine."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    @property
    def pid(self) -> int | None:
        """Return the id of the process with this machine's scheduler, or None without one."""
        return self._pool.pid if self._pool is not None else None

    def ask(
        self, questions: Sequence[Question], plan: Plan, warn: Callable[[str], None], ended: Ended
    ) -> Iterator[Answered]:
        """Each question with its run and the machine it was asked on, as they come; ends early where it was
        `ended`. Raises BadInput or Unavailable where it cannot be asked there.
        """
        if not questions:
            return
        from core.backends.workers.pool import Pool

        told = self._told(plan)
        try:
            self._pool = self._pool or Pool(self._place, self._engine.settings, ended=ended).open()
        except Cancelled:  # stopped before any worker was there
            return
        by_id = {question.id: question for question in questions}
        calls = ((one.id, {**told, "question": to_jsonable_python(one.query)}) for one in questions)
        for id, data in self._pool.each(TASK, calls, ended):
            answer = json.loads(to_text(data))
            for warning in answer["warnings"]:
                warn(warning)
            yield by_id[id], from_document(answer["run"]), Machine(**answer["machine"])

    def _told(self, plan: Plan) -> dict[str, Any]:
        """Return the part of a plan that every worker gets."""
        known = pipelines()
        own = [known[name] for name in plan.routes if name in known]
        if files := [one.name for one in own if run_files.used(one.name) is not None]:
            raise BadInput(f"route {files[0]!r} is a file of replies: evaluate it without workers")
        given = [one for one in own if one.given == "command"]
        if given and not self._place.local:
            name = given[0].name
            raise BadInput(f"route {name!r} was given on the command line; others need [external.{name}] set")
        corpus, gaps = self._engine.corpus(plan.corpus), missing(self._engine, plan.corpus)
        return {
            "plan": to_jsonable_python(plan),
            "fingerprint": corpus.fingerprint,
            "able": sorted({need.name for _, need in _needs(plan) if need not in gaps}),
            "chosen": _chosen(self._engine.settings.home, corpus.name),
            "history": dict(self._engine.route_history(corpus.name)),
            "pipelines": to_jsonable_python(given),
        }


def spread(place: WorkPlace | None, engine: Engine) -> AbstractContextManager[Spread | None]:
    """Return the workers of a place while it is entered, or None for this process."""
    return nullcontext() if place is None else Spread(place, engine)


class _Worker(Engine):
    """The engine of a worker process: it stores nothing, and orders routes by the history of who asks."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.histories: dict[str, Mapping[str, float]] = {}
        self.fit: set[str] = set()  # plans that it was checked for

    def route_history(self, corpus: str) -> Mapping[str, float]:
        """As who asks has it."""
        return self.histories.get(corpus, {})


_workers: dict[int, tuple[Settings, _Worker]] = {}


def asked(settings: Settings, payload: Mapping[str, Any]) -> bytes:
    """In a worker: the run of one question with its spans, as JSON. Raises Cancelled where it is not wanted
    any more.
    """
    from core.backends.workers.inside import watch

    # One engine for all tasks of this process under equal settings, which are then the same object.
    _, engine = _workers.setdefault(id(settings), (settings, _Worker(settings)))
    plan = TypeAdapter(Plan).validate_python(payload["plan"])
    for one in TypeAdapter(list[Pipeline]).validate_python(payload["pipelines"]):
        add(one)
    engine.histories[plan.corpus] = payload["history"]
    _check(engine, plan, payload)
    question = Question("", TypeAdapter(Query).validate_python(payload["question"]))
    warnings: list[str] = []
    run = ask(engine, question, plan, warnings.append, watch())
    if run is None:
        raise Cancelled("the question is not wanted any more")
    answer = {"run": to_document(run), "warnings": warnings, "machine": asdict(here())}
    return to_bytes(dumps(answer))


def _check(engine: _Worker, plan: Plan, payload: Mapping[str, Any]) -> None:
    """Check once per plan that this worker has everything the plan needs. Raises Unavailable with
    instructions.
    """
    key = json.dumps([payload[name] for name in ("plan", "fingerprint", "able", "chosen")])
    if key in engine.fit:
        return
    where = f"machine {here().host}"
    try:
        corpus = engine.corpus(plan.corpus)
    except RouteScopeError as error:
        home = engine.settings.home
        raise Unavailable(f"{where} has no corpus {plan.corpus} in {home} ({error}); copy it there") from None
    if corpus.fingerprint != payload["fingerprint"]:
        there = f"fingerprint {corpus.fingerprint}, wanted {payload['fingerprint']}"
        raise Unavailable(
            f"{where} has another state of corpus {plan.corpus} ({there}); copy the index there"
        )
    if _chosen(engine.settings.home, plan.corpus) != payload["chosen"]:
        what = f"other thresholds or fitted weights for corpus {plan.corpus} in {engine.settings.home}"
        raise Unavailable(f"{where} has {what}; copy the folders {', '.join(CHOSEN)} there")
    engine.embedder(corpus.info.embedder)  # loaded once, and no route's own time
    gaps = missing(engine, plan.corpus)
    for name, need in _needs(plan):
        if need in gaps and need.name in payload["able"]:
            raise Unavailable(f"{where} cannot run {name}: {gaps[need]}")
    engine.fit.add(key)


def _chosen(home: Path, corpus: str) -> str:
    """Return a digest of what people chose or fitted that decides how routes rank, besides parameters."""
    digest = hashlib.sha256()
    of_all = (home / name for name in CHOSEN[:2])
    of_this = (home / "evaluators" / f"{corpus}.json", home / fusion_weights.FOLDER / corpus)
    for place in (*of_all, *of_this):
        for file in [place] if place.is_file() else sorted(place.rglob("*.json")):
            digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _needs(plan: Plan) -> list[tuple[str, Need]]:
    """Return what each of the plan's routes needs with its parameters."""
    chosen = [(route, route.settle(plan.parameters.get(route.name, {}))) for route in pick(list(plan.routes))]
    return [(route.name, need) for route, parameters in chosen for need in route.needed(parameters)]
