"""What an evaluation is to measure, as pages and commands say it and as it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from core.domain.errors import BadInput
from core.domain.types import AnswerBy, AnswerOrder

SEED = 13  # of the sample of questions

STORED = "knobs"  # what files call the parameters


@dataclass(frozen=True, slots=True)
class Spec:
    """What is to be measured. Without `routes`: those that can run and ask no language model.

    The questions are those of the corpus; or of the set `labels` that people made on the Label page; or of
    the files `questions`, with the judgements of the file `qrels` in place of their own. `repeats` asks the
    language model that often, each time with other seeds, to tell how much the figures vary by themselves.
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

    def document(self) -> dict[str, Any]:
        """The spec as JSON values."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        document[STORED] = document.pop("parameters")
        return document

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Spec:
        """The opposite; BadInput for what is none."""
        try:
            given = {**document}
            if STORED in given:
                given["parameters"] = given.pop(STORED)
            found = {**given, "routes": tuple(document.get("routes") or ()),
                     "questions": tuple(document.get("questions") or ())}  # fmt: skip
            return cls(**found)
        except (TypeError, AttributeError) as error:
            raise BadInput(f"this is no description of an evaluation: {error}") from None
