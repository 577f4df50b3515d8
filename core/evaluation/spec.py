"""The specification of an evaluation, as pages and commands write it and as it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from core.domain.errors import BadInput
from core.domain.types import AnswerBy, AnswerOrder
from core.evaluation.stored import checked

SEED = 13  # of the sample of questions


@dataclass(frozen=True, slots=True)
class Spec:
    """The specification of an evaluation. Without `routes`: the routes that can run and ask no language
    model. The questions are those of the corpus; or of the set `labels` that people made on the Label page;
    or of the files `questions`, with the judgements of the file `qrels` instead of their own. `repeats` asks
    the language model that often, each time with other seeds, to measure how much the figures vary by
    themselves. `runs` are NAME=FILE of routes whose replies were read from a file: they cannot be asked
    again. `audit` names the routes that are asked each question again with each of their decisions turned.
    `filters` are conditions on metadata that passages have to meet to be found, for every question.
    `chunkings` are further chunkings of the corpus' source ("256", "headings"), measured next to it.
    """

    corpus: str
    routes: tuple[str, ...] = ()
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    split: str = "test"
    mode: str | None = None
    queries: int | None = None
    per_mode: int | None = None
    seed: int = SEED
    labels: str | None = None
    questions: tuple[str, ...] = ()
    qrels: str | None = None
    timing: Literal["shared", "isolated"] | None = None
    answers: bool = False
    answer_by: AnswerBy | None = None
    answer_order: AnswerOrder | None = None
    evidence: float | None = None
    baseline: str | None = None
    repeats: int = 1
    audit: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    chunkings: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # of `questions`: field -> column

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    def document(self) -> dict[str, Any]:
        """Return the spec as JSON values."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return document

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Spec:
        """Read what `document` returned. Raises BadInput if it is not a spec."""
        from pydantic import TypeAdapter

        try:
            given = dict(document)
            given |= {name: given.get(name) or () for name in ("routes", "questions")}  # null: none
            return checked(TypeAdapter(cls), given)
        except ValueError as error:
            raise BadInput(f"this is not a valid description of an evaluation: {error}") from None
