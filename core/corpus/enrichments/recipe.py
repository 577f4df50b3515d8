"""The definition of an enrichment: how it is built for a corpus, and how it is opened for search."""

from __future__ import annotations

import hashlib
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar
from zipfile import BadZipFile

from core.backends.admission import Asker
from core.backends.base import LLM, Completion, LLMRequest
from core.backends.llm.model import CachedLLM
from core.corpus.build import Stages
from core.corpus.corpus import Corpus
from core.corpus.embeddings import Vectors
from core.corpus.helpers import Helpers
from core.domain.errors import ModelFailed, Unavailable
from core.domain.settings import Settings
from core.domain.types import Passage

T = TypeVar("T")
log = logging.getLogger(__name__)
CALL_S = 600.0  # a whole document may be read before the first word is written
GIVE_UP = 5  # calls that fail one after the other: the endpoint is broken, not one passage
AT_ONCE = 8  # calls at most


@dataclass(slots=True)
class Spent:
    """The use of the language model; times are those of the original calls."""

    calls: int = 0
    recalled: int = 0  # of the calls, those answered from the cache or recordings
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ms: float = 0.0


@dataclass(slots=True)
class Tools:
    """The tools of a recipe. Models are loaded on first use."""

    settings: Settings
    stages: Stages
    llm: LLM | None  # of recipes that use one
    vectors: Callable[[], Vectors]
    spent: Spent = field(default_factory=Spent)
    notes: list[str] = field(default_factory=list)
    helpers: Helpers | None = None  # who embed and ask in place of this process

    def _look(self, done: Callable[[], int], total: int) -> Callable[[], bool]:
        """Return what helpers call while they work; it raises Cancelled."""

        def look() -> bool:
            self.stages.tick(done(), total)
            return False

        return look

    def ask_all(self, requests: Sequence[LLMRequest]) -> Iterator[str | None]:
        """Yield the reply to each request in order; None if the model failed, which is counted and noted.

        Replies are cached as they arrive, so that a stopped build repeats no call. Raises ModelFailed after
        GIVE_UP failures in a row, Unavailable, Cancelled.
        """
        from concurrent.futures import ThreadPoolExecutor

        if (llm := self.llm) is None:
            raise Unavailable("this enrichment was declared to need no language model")
        if self.helpers is not None and isinstance(llm, CachedLLM):
            yield from self._by_helpers(self.helpers, llm, requests)
            return
        who, row = Asker(cancel=self.stages.cancel), 0  # all of it has one turn between the runs that ask

        def ask(request: LLMRequest) -> Completion | ModelFailed:
            try:
                with who.asking():
                    return llm.complete(request, timeout=CALL_S, cancel=self.stages.cancel)
            except ModelFailed as error:
                return error

        at_once = min(AT_ONCE, self.settings.llm_slots or (1 if llm.local else AT_ONCE))
        ahead = 1 if at_once == 1 else 2 * at_once  # so that a slow reply holds up none
        pool, left = ThreadPoolExecutor(at_once), iter(requests)
        asked = deque(pool.submit(ask, request) for request in islice(left, ahead))
        try:
            for at in range(len(requests)):
                self.stages.tick(at, len(requests))
                reply = asked.popleft().result()
                row = _failures(row, reply)
                asked.extend(pool.submit(ask, request) for request in islice(left, 1))
                yield self._count(reply)
        finally:
            pool.shutdown(cancel_futures=True)
        self.stages.tick(len(requests), len(requests))

    def _by_helpers(
        self, helpers: Helpers, llm: CachedLLM, requests: Sequence[LLMRequest]
    ) -> Iterator[str | None]:
        """Yield the same by the models of workers; cached replies are not requested there."""
        replies: dict[int, Completion | ModelFailed] = {}
        left = [at for at, request in enumerate(requests) if not llm.recorded(request)]
        known, row = len(requests) - len(left), 0
        look = self._look(lambda: known + len(replies), len(requests))
        name = self.settings.index_llm or self.settings.llm
        for at, reply in helpers.complete(name, [requests[at] for at in left], look):
            replies[left[at]] = reply
            row = _failures(row, reply)
            if isinstance(reply, Completion):
                llm.remember(requests[left[at]], reply)
        for at, request in enumerate(requests):
            found = replies.pop(at, None)
            if found is None:
                found = llm.complete(request, timeout=CALL_S, cancel=self.stages.cancel)
            yield self._count(found)
        self.stages.tick(len(requests), len(requests))

    def _count(self, reply: Completion | ModelFailed) -> str | None:
        self.spent.calls += 1
        if isinstance(reply, ModelFailed):
            self.spent.failed += 1
            if self.spent.failed == 1:
                self.notes.append(f"the model failed at first with: {reply}")
            return None
        self.spent.recalled += reply.source != "live"
        self.spent.prompt_tokens += reply.prompt_tokens
        self.spent.completion_tokens += reply.completion_tokens
        self.spent.ms += reply.ms
        return reply.text.strip() or None


def _failures(row: int, reply: Completion | ModelFailed) -> int:
    """Return how many replies in a row failed. Raises ModelFailed for GIVE_UP."""
    if not isinstance(reply, ModelFailed):
        return 0
    if row + 1 >= GIVE_UP:
        raise reply
    return row + 1


class KeptSteps(Generic[T]):
    """The finished steps of a build that may be stopped: each in a file named for its content."""

    def __init__(self, folder: Path, read: Callable[[Path], T]) -> None:
        """`read` reads the file of a step."""
        self.folder, self._read = folder, read
        folder.mkdir(exist_ok=True)

    def get(self, content: bytes) -> T | None:
        """Return the stored result for `content`; None if it is not stored, or its file is damaged."""
        if not (file := self._file(content)).exists():
            return None
        try:
            return self._read(file)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            log.warning("%s is damaged (%s); its passages are read again", file, error)
            return None

    def keep(self, content: bytes, made: bytes) -> None:
        """Keep the file of a step."""
        part = self._file(content).with_suffix(".part")
        part.write_bytes(made)
        part.replace(self._file(content))

    def made(self, content: bytes, make: Callable[[], bytes]) -> T:
        """Return the result for `content`, and compute and store it first if it is not stored."""
        if (found := self.get(content)) is None:
            self.keep(content, make())
            found = self._read(self._file(content))
        return found

    def ahead(self, task: str, name: str, steps: Sequence[tuple[bytes, Sequence[str]]], tools: Tools) -> None:
        """Have helpers compute the steps that are not stored, with the model `name` and by the function
        `task`, see core.corpus.helpers: each step's content with its texts. Raises Cancelled.
        """
        total = sum(len(texts) for _, texts in steps)
        left = {at: texts for at, (content, texts) in enumerate(steps) if self.get(content) is None}
        done = [total - sum(map(len, left.values()))]
        if tools.helpers is not None and left:
            look = tools._look(lambda: done[0], total)
            for at, made in tools.helpers.made(task, name, left.items(), look):
                self.keep(steps[at][0], made)
                done[0] += len(left[at])

    def _file(self, content: bytes) -> Path:
        return self.folder / f"{hashlib.blake2b(content, digest_size=16).hexdigest()}.npz"


class Recipe(ABC):
    """One kind of enrichment. A change of `version` makes what was made before stale."""

    name: str
    version = 1
    title: str  # what it is, in words that complete "this corpus has no ..."
    cost: str  # what making it takes
    uses_llm = False
    apart = False  # made only where it is named, not by "all"

    def model(self, _settings: Settings, /) -> str:
        """Return the model in the settings that builds it, besides the embedder and the language model; "" if
        none.

        Raises Unavailable if a required model is not set.
        """
        return ""

    @abstractmethod
    def about_bytes(self, characters: int, passages: int, dim: int, settings: Settings, /) -> int:
        """Estimate its bytes on disk for `passages` passages of `characters` characters in all, with
        embeddings of `dim` dimensions.
        """

    @abstractmethod
    def make(self, corpus: Corpus, folder: Path, tools: Tools) -> int:
        """Write the files into the empty `folder`; returns the number of entries."""

    @abstractmethod
    def open(self, corpus: Corpus, folder: Path, settings: Settings, /) -> Any:
        """Open it for search by steps."""


def siblings(corpus: Corpus) -> list[list[tuple[int, Passage]]]:
    """Return the passages of each document with their rows, in reading order.

    Passages that were separate documents belong together if their metadata have the same `doc_id`; `index`
    gives the order, as in sets that come in pieces.
    """
    import json

    groups: dict[str, list[tuple[Any, int, Passage]]] = {}
    for row, passage, meta in corpus.everything():
        given = meta.get("metadata")
        facts = json.loads(given) if isinstance(given, str) and given.startswith("{") else meta
        whole = facts.get("doc_id") if isinstance(facts, dict) else None
        order = facts.get("index") if whole is not None else None
        place = order if isinstance(order, int) else passage.start
        groups.setdefault(str(whole or passage.doc_id), []).append((place, row, passage))
    return [
        [(row, passage) for _, row, passage in sorted(group, key=lambda one: (one[0], one[2].id))]
        for group in groups.values()
    ]
