"""The specification of an evaluation, as pages and commands write it and as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from core.domain.errors import BadInput
from core.domain.types import AnswerBy, AnswerOrder
from core.evaluation.options import check, option, options
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
    split: str = option("test", "dev, test or all.", "SPLIT")
    mode: str | None = option(None, "Only questions of this kind.")
    queries: int | None = option(None, "Only a sample of N questions.", "N", least=1)
    per_mode: int | None = option(None, "Only a sample of N labelled questions per mode.", "N", least=1)
    seed: int = option(SEED, "Seed of the sample.", least=None)
    labels: str | None = option(None, "Questions and labels of a label set from the Label page.", "NAME")
    questions: tuple[str, ...] = option(
        (),
        "Questions as JSONL, CSV, TSV, JSON, parquet or a dataset's folder, of this tool or another (ragas, "
        "AutoRAG, DeepEval, promptfoo, LangSmith, SQuAD, Quepid, TREC ...); repeatable.",
        "FILE",
    )
    qrels: str | None = option(None, "TREC qrels for --questions, instead of the labels in the file.", "FILE")
    timing: Literal["shared", "isolated"] | None = option(None, "Share equal steps between routes or not.")
    answers: bool = False
    answer_by: AnswerBy | None = None
    answer_order: AnswerOrder | None = None
    evidence: float | None = None
    baseline: str | None = option(None, "Route to compare with. Default: the first route.", "ROUTE")
    repeats: int = option(
        1,
        "Call the language model N times with different seeds, to measure stability.",
        "N",
        least=1,
        most=20,
    )
    audit: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    chunkings: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # of `questions`: field -> column

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        for name, (one, _) in options(self).items():
            check(one, getattr(self, name))

    def document(self) -> dict[str, Any]:
        """Return the spec as JSON values."""
        document: dict[str, Any] = to_jsonable_python(self)
        return document

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Spec:
        """Read what `document` returned. Raises BadInput if it is not a spec."""
        try:
            given = dict(document)
            given |= {name: given.get(name) or () for name in ("routes", "questions")}  # null: none
            return checked(TypeAdapter(cls), given)
        except ValueError as error:
            raise BadInput(f"this is not a valid description of an evaluation: {error}") from None
