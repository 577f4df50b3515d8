"""The specification of an evaluation, as pages and commands write it and as it is stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from inspect import Parameter, Signature, signature
from math import isfinite
from typing import Any, ClassVar, Literal

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from core.domain.errors import BadInput
from core.domain.types import AnswerBy, AnswerOrder
from core.evaluation.stored import checked

KEY = "option"  # in a field's metadata


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """The option of a command for one field."""

    help: str
    metavar: str | None = None
    # that of the field's name if empty; "--on/--off" for a switch that is on by default
    flags: str = ""
    # the values allowed; None for no limit
    least: float | None = 0
    most: float | None = None
    # converts the words that a command was given
    read: Callable[[Any], Any] | None = None

    def named(self, name: str) -> DeclaredOption:
        """Return the option with its flags, of a field or parameter called `name`."""
        return replace(self, flags=self.flags or f"--{name.replace('_', '-')}")

    def argument(self, value: Any) -> list[str]:
        """Return the words of a command line that give `value`; [] for the default of a switch."""
        if not isinstance(value, bool):
            return [self.flags, value if isinstance(value, str) else f"{value:.10g}"]
        on, _, off = self.flags.partition("/")
        return ([off] if not value else []) if off else [on] * value


def option(default: Any, *given: Any, **limits: Any) -> Any:
    """Return a field with an option."""
    return field(default=default, metadata={KEY: DeclaredOption(*given, **limits)})


def options(model: Any) -> dict[str, tuple[Field[Any], DeclaredOption]]:
    """Return the fields of `model` that have an option, by name."""
    known = {one.name: one for one in fields(model) if KEY in one.metadata}
    return {name: (one, one.metadata[KEY].named(name)) for name, one in known.items()}


def with_keywords(
    function: Callable[..., Any], fields: Mapping[str, Field[Any]], **defaults: Any
) -> Signature:
    """Return the signature of a function that takes fields as `**keywords`, with each of them by its name."""
    known = list(signature(function).parameters.values())[:-1]
    at = next((n for n, one in enumerate(known) if one.kind is Parameter.KEYWORD_ONLY), len(known))
    own = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name, one.default), annotation=one.type)
        for name, one in fields.items()
    ]
    return signature(function).replace(parameters=[*known[:at], *own, *known[at:]])


def check(one: Field[Any], value: Any, name: str = "") -> None:
    """Check a value by the type and the limits of its field. Raises BadInput."""
    given, kind = one.metadata[KEY], str(one.type)
    least, most = given.least, given.most
    if value is None and "None" in kind:
        return
    to = "" if least is None else f" {least} or more" if most is None else f" {least} to {most}"
    if kind.startswith(("int", "float")):
        whole = kind.startswith("int")
        good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        good = good and isfinite(value) and (least is None or value >= least)
        good = good and (most is None or value <= most)
        wanted = f" a whole number{to and ','}{to}" if whole else to or " a number"
    elif kind == "bool":
        good, wanted = isinstance(value, bool), " true or false"
    elif kind.startswith("Literal"):
        choices = re.findall(r"'([^']+)'", kind)
        good, wanted = value in choices, f" {' or '.join(choices)}"
    elif kind.startswith("str"):
        good, wanted = isinstance(value, str), " a text"
    else:
        return
    if not good:
        raise BadInput(f"{name or one.name}={value!r}; give{wanted}")


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
    nuggets: bool = option(
        False, "Also have the language model assign the checked nuggets of a label set to the answers."
    )
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
        if self.nuggets and (not self.answers or self.audit or self.chunkings):
            raise BadInput("nuggets need answers, and no audit or comparison of chunkings in one evaluation")

    def document(self) -> dict[str, Any]:
        """Return the spec as JSON values."""
        found: dict[str, Any] = to_jsonable_python(self)
        return found

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Spec:
        """Read what `document` returned. Raises BadInput if it is not a spec."""
        try:
            given = dict(document)
            given |= {name: given.get(name) or () for name in ("routes", "questions")}  # null: none
            return checked(TypeAdapter(cls), given)
        except ValueError as error:
            raise BadInput(f"this is not a valid description of an evaluation: {error}") from None
