"""The result of one route for one question of an evaluation, and the journal that keeps finished questions,
so that an interrupted evaluation goes on where it stopped.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Self, TextIO, TypeVar

from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationInfo

from core.domain import jsonl, system
from core.domain.errors import BadInput
from core.domain.outputs import ReturnedHit
from core.domain.ranked import Ids, Ranked
from core.domain.types import Status


@dataclass(frozen=True, slots=True)
class Taken:
    """A decision of a step; `forced` is what the step decided itself, where a request turned it, else ""."""

    step: str
    decision: str
    score: float | None = None
    threshold: float | None = None
    forced: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A model call: `key` is equal for equal prompts; `made` says when, ISO 8601, if before its run."""

    key: str
    ms: float
    made: str = ""


def _packed(hits: Any, info: ValidationInfo) -> Ranked:
    """Read a stored ranking; the context is the ids that are known."""
    ids = info.context if isinstance(info.context, Ids) else Ids()
    return ids.ranked((id, score) for id, score in hits)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one route for one question, as far as an evaluation needs it. `error` is the reason it
    failed or, if it ended well, the reason the answer could not be written.
    """

    status: Status
    ms: float
    hits: Annotated[Ranked, PlainValidator(_packed), PlainSerializer(list)] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None
    answer: str | None = None
    citations: tuple[str, ...] = ()
    abstained: bool = False
    wrong: tuple[int, ...] = ()  # numbers of markers that no passage shown has
    uncited: int = 0  # sentences without a citation
    shown: tuple[str, ...] = ()  # passages the answer was written from, if its step recorded them
    # Its steps' records of "class" and the "features" that decided it, "route" and "sql".
    said: Mapping[str, str] = field(default_factory=dict)
    run: str = ""  # the id of the run it was asked in, where that was kept
    began: str = ""  # when that run began, ISO 8601, UTC
    decided: tuple[Taken, ...] = ()  # in the order of the steps
    asked: tuple[Asked, ...] = ()  # the model calls, those of steps that another route did with them
    steps: int = 0  # spans of the route; 0 if that was not recorded
    machine: str = ""  # the kind of machine that its time was measured on; "" if that was not recorded
    host: str = ""  # which of that kind
    returned: tuple[ReturnedHit, ...] = ()  # of a pipeline of the user's: its hits as it returned them
    documents: Mapping[str, str] = field(default_factory=dict)  # passage -> document, if its id does not say

    @property
    def tokens(self) -> int:
        """Return the tokens of its model calls, prompts and replies."""
        return self.prompt_tokens + self.completion_tokens


Outcomes = dict[str, dict[str, Outcome]]  # question id -> route -> outcome


JOURNAL = "questions.jsonl"
T = TypeVar("T")


class AnotherEvaluation(BadInput):
    """An error for a folder whose results were made under other conditions, so that it cannot be resumed."""


class Lines(ABC, Generic[T]):
    """A file of finished questions, a line each, after one with the conditions they were asked under."""

    name: ClassVar[str]
    # of a line: what was found for its question; its outcomes keep each passage's id once (see Outcome.hits)
    adapter: ClassVar[TypeAdapter[Any]]
    # the key of it in its line; "" for the line itself
    key: ClassVar[str] = ""

    def __init__(self, file: TextIO, done: dict[str, T]) -> None:
        self.done = done
        self._file = file

    @classmethod
    def read(cls, line: Mapping[str, Any], ids: Ids) -> T:
        """Return what `add` wrote."""
        found: T = cls.adapter.validate_python(line[cls.key] if cls.key else line, context=ids)
        return found

    @classmethod
    def saved(cls, folder: Path) -> dict[str, T]:
        """Return the lines in `folder` by question, whatever they were begun under; of two on one question
        the later counts. Raises FileNotFoundError without any, ValueError, KeyError or TypeError if invalid.
        """
        ids = Ids()
        lines = islice(_items(folder / cls.name), 1, None)
        return {item["question"]: cls.read(item, ids) for item in lines}

    @staticmethod
    @abstractmethod
    def well(item: T) -> bool:
        """Return whether nothing failed."""

    def add(self, question: str, item: T) -> None:
        """Write one finished question down before the next is asked."""
        plain = self.adapter.dump_python(item, mode="json")
        self._write({"question": question, **({self.key: plain} if self.key else plain)})

    def _write(self, item: Mapping[str, Any]) -> None:
        self._file.write(jsonl.ascii_text(item) + "\n")
        self._file.flush()

    @classmethod
    @contextmanager
    def open(
        cls, folder: Path, conditions: Mapping[str, Any], *, fresh: bool = False, retry: bool = False
    ) -> Iterator[Self]:
        """Yield the file in `folder`, begun if need be. Raises BadInput if it was begun under other
        `conditions`.

        `fresh` forgets what is there; `retry` asks the questions again at which something failed.
        """
        with alone(folder), cls.within(folder, conditions, fresh=fresh, retry=retry) as journal:
            yield journal

    @classmethod
    @contextmanager
    def within(
        cls, folder: Path, conditions: Mapping[str, Any], *, fresh: bool, retry: bool
    ) -> Iterator[Self]:
        """`open` of a folder that is already this process's `alone`."""
        wanted = json.loads(json.dumps(conditions))
        path, draft = folder / cls.name, folder / f"{cls.name}.tmp"
        done: dict[str, T] = {}
        if path.is_file() and not fresh:
            done = cls._read(path, wanted)
        if retry:
            done = {question: item for question, item in done.items() if cls.well(item)}
        with draft.open("w", encoding="utf-8") as file:
            journal = cls(file, done)
            journal._write({"conditions": wanted})
            for question, item in done.items():
                journal.add(question, item)
            system.replace(draft, path)
            yield journal

    @classmethod
    def _read(cls, path: Path, wanted: Mapping[str, Any]) -> dict[str, T]:
        """Return the questions in a file that was begun under the conditions `wanted`."""
        try:
            items, ids = _items(path), Ids()
            begun = dict(next(items, {"conditions": wanted})["conditions"])
            done = {item["question"]: cls.read(item, ids) for item in items}
            other = [
                f"{key}: {begun.get(key)!r} there, {wanted[key]!r} now"
                for key in wanted
                if begun.get(key) != wanted[key]
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadInput(f"{path} is damaged; give another --out, or --fresh to start over") from None
        if begun != wanted:
            what = f"another evaluation ({'; '.join(other)[:400] or 'of another kind'})"
            raise AnotherEvaluation(
                f"{path.parent} holds {what}; give another --out, or --fresh to discard it"
            )
        return done


class Journal(Lines[dict[str, Outcome]]):
    """The results of each route for each question."""

    name = JOURNAL
    adapter = TypeAdapter(dict[str, Outcome])
    key = "routes"

    @staticmethod
    def well(item: dict[str, Outcome]) -> bool:
        """Return whether every route, and its answer, ended well."""
        return all(one.status == "ok" and not one.error for one in item.values())


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Yield the folder, made if need be, for this process alone."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(f"another evaluation is writing to {folder}; wait until it ends") from None
    except OSError as error:
        raise BadInput(f"--out {folder} cannot be written: {error.strerror or error}") from None
    try:
        yield
    finally:
        lock.release()


def busy(folder: Path) -> bool:
    """Return whether some process is writing to the folder of an evaluation."""
    from filelock import FileLock, Timeout

    if not folder.is_dir():
        return False
    try:
        with FileLock(folder / ".lock", timeout=0):
            return False
    except Timeout:
        return True


def _items(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal one by one: all at once they take gigabytes. A process that was killed may
    have left half a line, which does not end in a line break.
    """
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
