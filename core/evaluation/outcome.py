"""The result of one route for one question of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, ValidationInfo

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
    # Its steps' records of "class" and the "features" that decided it, "route", "sql" and "stop".
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
