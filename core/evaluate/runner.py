"""Asks every question of a labelled set through the engine, and can go on where an earlier run stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TextIO

from core.engine import Job, Request
from core.errors import BadInput
from core.evaluate.dataset import LabelledSet, Question
from core.types import RouteResult, Scored, Status

JOURNAL = "questions.jsonl"
Progress = Callable[[int, int], None]  # (questions done, of how many)


class Asks(Protocol):
    """What is needed of an engine."""

    def start(self, request: Request, /) -> Job: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one route did with one question, as far as an evaluation needs it."""

    status: Status
    ms: float
    hits: Scored = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None


Outcomes = dict[str, dict[str, Outcome]]  # question id -> route -> outcome


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of every question."""

    corpus: str
    routes: tuple[str, ...]
    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    timing: Literal["shared", "isolated"] = "shared"


def run(
    engine: Asks,
    labelled: LabelledSet,
    plan: Plan,
    *,
    journal: Journal | None = None,
    progress: Progress = lambda _done, _total: None,
    warn: Callable[[str], None] = lambda _warning: None,
) -> tuple[Outcomes, bool]:
    """Every question's outcome, in order, and whether all were asked (False: the user interrupted).

    A question finished in an earlier run of `journal` is not asked again. Raises what Engine.start raises.
    """
    done = dict(journal.done) if journal else {}
    outcomes = {q.id: done[q.id] for q in labelled.questions if q.id in done}
    for question in labelled.questions:
        if question.id in outcomes:
            continue
        progress(len(outcomes), len(labelled.questions))
        try:
            found = _ask(engine, question, plan, warn)
        except KeyboardInterrupt:
            return outcomes, False
        outcomes[question.id] = {
            result.route: _outcome(result, question.id if labelled.drop_self else None, labelled)
            for result in found
        }
        if journal:
            journal.add(question.id, outcomes[question.id])
    progress(len(outcomes), len(labelled.questions))
    return {question.id: outcomes[question.id] for question in labelled.questions}, True


def _ask(engine: Asks, question: Question, plan: Plan, warn: Callable[[str], None]) -> Sequence[RouteResult]:
    job = engine.start(Request(question.query, plan.corpus, plan.routes, plan.knobs, timing=plan.timing))
    try:
        results = job.wait().results
    except KeyboardInterrupt:
        job.cancel()
        raise
    for warning in job.warnings:
        warn(warning)
    return results


def _outcome(result: RouteResult, own_id: str | None, labelled: LabelledSet) -> Outcome:
    """`result` in short; the question's own passage (`own_id`) is no result unless it is judged."""
    drop = own_id if own_id is not None and own_id not in labelled.qrels.get(own_id, {}) else None
    tokens = [span.tokens for span in result.spans if span.tokens is not None]
    return Outcome(
        result.status,
        result.ms,
        tuple((hit.passage.id, hit.score) for hit in result.hits if hit.passage.id != drop),
        sum(span.calls for span in result.spans),
        sum(used.prompt for used in tokens),
        sum(used.completion for used in tokens),
        result.error,
    )


class Journal:
    """Finished questions, a line each, so that an interrupted evaluation goes on where it stopped."""

    def __init__(self, file: TextIO, done: Outcomes) -> None:
        self.done = done
        self._file = file

    def add(self, question: str, outcomes: Mapping[str, Outcome]) -> None:
        """Write one finished question down before the next is asked."""
        self._write({"question": question, "routes": {route: asdict(one) for route, one in outcomes.items()}})

    def _write(self, item: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(item) + "\n")
        self._file.flush()

    @classmethod
    @contextmanager
    def open(
        cls, folder: Path, conditions: Mapping[str, Any], *, fresh: bool = False, retry: bool = False
    ) -> Iterator[Journal]:
        """The journal of `folder`, begun if need be; BadInput if it was begun under other `conditions`.

        `fresh` forgets what is there; `retry` asks the questions again at which some route did not end well.
        """
        wanted = json.loads(json.dumps(conditions))
        path, draft = folder / JOURNAL, folder / f"{JOURNAL}.tmp"
        with _alone(folder):
            done: Outcomes = {}
            if path.is_file() and not fresh:
                done = _read(path, wanted)
            if retry:
                done = {q: by for q, by in done.items() if all(one.status == "ok" for one in by.values())}
            with draft.open("w", encoding="utf-8") as file:
                journal = cls(file, done)
                journal._write({"conditions": wanted})
                for question, routes in done.items():
                    journal.add(question, routes)
                os.replace(draft, path)
                yield journal


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, made if need be, for this process alone."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(f"another evaluation is writing to {folder}; give another --out") from None
    except OSError as error:
        raise BadInput(f"--out {folder} cannot be written: {error.strerror or error}") from None
    try:
        yield
    finally:
        lock.release()


def _read(path: Path, wanted: Mapping[str, Any]) -> Outcomes:
    """The outcomes in a journal that was begun under the conditions `wanted`."""
    items = list(_whole_lines(path))
    begun = items[0].get("conditions") if items else wanted
    if begun != wanted:
        raise BadInput(
            f"{path.parent} holds another evaluation ({_difference(begun, wanted)}); "
            "give another --out, or --fresh to forget it"
        )
    return {item["question"]: _outcomes(item["routes"]) for item in items[1:]}


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines written to their end; a process that was killed may have left half of one."""
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        try:
            yield json.loads(line)
        except ValueError:
            raise BadInput(f"{path} is damaged; give another --out, or --fresh to begin again") from None


def _outcomes(routes: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    return {
        route: Outcome(**{**one, "hits": tuple((passage, score) for passage, score in one["hits"])})
        for route, one in routes.items()
    }


def _difference(begun: Any, wanted: Mapping[str, Any]) -> str:
    if not isinstance(begun, dict):
        return "of another kind"
    keys = [key for key in wanted if begun.get(key) != wanted[key]]
    return (
        "; ".join(f"{key}: {begun.get(key)!r} there, {wanted[key]!r} now" for key in keys)[:400]
        or "other fields"
    )
