"""Workers that ask the questions of an evaluation: the payloads they receive, and their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from core.backends import fusion_weights
from core.backends.external import run_files
from core.backends.workers.place import WorkPlace
from core.domain.errors import BadInput, Cancelled, RouteScopeError, Unavailable
from core.domain.filters import Filter
from core.domain.machine import Machine, here
from core.domain.pipelines import Pipeline
from core.domain.types import AnswerStyle, Query, Run, Turn
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
        told = self._told(plan)
        try:
            pool = self._open(ended)
        except Cancelled:  # stopped before any worker was there
            return
        by_id = {question.id: question for question in questions}
        calls = ((one.id, {**told, "question": _plain(one.query)}) for one in questions)
        for id, data in pool.each(TASK, calls, ended):
            answer = json.loads(to_text(data))
            for warning in answer["warnings"]:
                warn(warning)
            yield by_id[id], from_document(answer["run"]), Machine(**answer["machine"])

    def _open(self, ended: Ended) -> Pool:
        from core.backends.workers.pool import Pool

        if self._pool is None:
            self._pool = Pool(self._place, self._engine.settings, ended=ended).open()
        return self._pool

    def _told(self, plan: Plan) -> dict[str, Any]:
        """Return the part of a plan that every worker gets."""
        known = pipelines()
        own = [known[name] for name in plan.routes if name in known]
        if files := [one.name for one in own if run_files.used(one.name) is not None]:
            raise BadInput(f"route {files[0]!r} is a file of replies: evaluate it without workers")
        given = [one for one in own if one.given == "command"]
        if given and not self._place.local:
            raise BadInput(
                f"route {given[0].name!r} was given on the command line of this machine; to ask it on "
                f"others, put it into the settings file of each as [external.{given[0].name}]"
            )
        corpus = self._engine.corpus(plan.corpus)
        return {
            "plan": json.loads(json.dumps(asdict(plan))),
            "fingerprint": corpus.fingerprint,
            "able": sorted(_able(self._engine, plan)),
            "chosen": _chosen(self._engine.settings.home, corpus.name),
            "history": dict(self._engine.route_history(corpus.name)),
            "pipelines": [json.loads(json.dumps(asdict(one))) for one in given],
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

    engine = _engine(settings)
    plan = _plan(payload["plan"])
    for one in payload["pipelines"]:
        add(Pipeline(**{**one, "headers": tuple((name, value) for name, value in one["headers"])}))
    engine.histories[plan.corpus] = payload["history"]
    _check(engine, plan, payload)
    text, turns = payload["question"]["text"], payload["question"]["history"]
    question = Question("", Query(text, tuple(Turn(role, said) for role, said in turns)))
    warnings: list[str] = []
    run = ask(engine, question, plan, warnings.append, watch())
    if run is None:
        raise Cancelled("the question is not wanted any more")
    answer = {"run": to_document(run), "warnings": warnings, "machine": asdict(here())}
    return to_bytes(dumps(answer))


def _engine(settings: Settings) -> _Worker:
    """One for all tasks of this process under equal settings, which are then the same object."""
    known = _workers.get(id(settings))
    if known is None:
        known = _workers[id(settings)] = settings, _Worker(settings)
    return known[1]


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
        raise Unavailable(
            f"{where} has no corpus {plan.corpus} in {engine.settings.home} ({error}); "
            "copy the indexes there, or build the corpus there"
        ) from None
    if corpus.fingerprint != payload["fingerprint"]:
        raise Unavailable(
            f"{where} has another state of corpus {plan.corpus} (fingerprint {corpus.fingerprint}, wanted "
            f"{payload['fingerprint']}); copy the index there, or build it there from the same documents"
        )
    if _chosen(engine.settings.home, plan.corpus) != payload["chosen"]:
        raise Unavailable(
            f"{where} has other thresholds or fitted weights for corpus {plan.corpus} in "
            f"{engine.settings.home}; copy the folders {', '.join(CHOSEN)} there"
        )
    engine.embedder(corpus.info.embedder)  # loaded once, and no route's own time
    gaps = missing(engine, plan.corpus)
    wanted = set(payload["able"])
    for route in pick(list(plan.routes)):
        for need in route.needed(route.settle(plan.parameters.get(route.name, {}))):
            if need in gaps and need.name in wanted:
                raise Unavailable(f"{where} cannot run {route.name}: {gaps[need]}")
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


def _able(engine: Engine, plan: Plan) -> set[str]:
    """Return the needs of the plan's routes that are met here."""
    gaps = missing(engine, plan.corpus)
    needed = {
        need
        for route in pick(list(plan.routes))
        for need in route.needed(route.settle(plan.parameters.get(route.name, {})))
    }
    return {need.name for need in needed if need not in gaps}


def _plain(query: Query) -> dict[str, Any]:
    return {"text": query.text, "history": [[turn.role, turn.text] for turn in query.history]}


def _plan(given: Mapping[str, Any]) -> Plan:
    style = AnswerStyle(**given["style"]) if given["style"] else None
    return replace(
        Plan(given["corpus"], tuple(given["routes"])),
        **{
            **{name: given[name] for name in ("parameters", "timing", "draw", "forced")},
            "style": style,
            "where": tuple(Filter(**{**one, "values": tuple(one["values"])}) for one in given["where"]),
        },
    )
