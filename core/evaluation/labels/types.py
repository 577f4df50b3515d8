"""The records of labelling: sets of questions, the passages found for them, and their judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from core.domain.types import Passage
from core.evaluation.dataset import Question

Kind = Literal["grade", "cannot", "later", "withdrawn"]
Source = Literal["person", "model", "import", "adjudication"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SOURCES: tuple[Source, ...] = get_args(Source)
GRADES = {
    3: "answers the question",
    2: "answers part of it, or is a necessary step to the answer",
    1: "background: same topic, without an answer",
    0: "not relevant",
}
MODEL = "model:"  # what the names of annotators that are models begin with, and no other
Pair = tuple[str, str]  # ids of a question and a passage


@dataclass(frozen=True, slots=True)
class LabelSet:
    """A set of questions over a corpus to be labelled. A passage is relevant from the grade `relevant_from`.
    `guidelines` are the instructions for annotators; `created` is ISO 8601, UTC.
    """

    name: str
    corpus: str
    guidelines: str
    relevant_from: int
    created: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """An annotator's judgement of a passage for a question; `grade` is 0 to 3 for the kind "grade", else
    None. "cannot": cannot tell; "later": deferred; "withdrawn": takes back the newest active judgement by the
    same annotator of the same passage, so that the previous one counts again. An adjudication is stored next
    to the annotator's own judgement. `number` grows with every judgement of a store; `created` is ISO 8601,
    UTC.
    """

    question: str
    passage: str
    annotator: str
    source: Source
    kind: Kind
    grade: int | None = None
    note: str = ""
    number: int = 0
    created: str = ""

    @property
    def pair(self) -> Pair:
        """Return the question and the passage."""
        return self.question, self.passage


@dataclass(frozen=True, slots=True)
class Pooled:
    """A passage as it was when it was found first, and by whom: (route, its rank from 1)."""

    passage: Passage
    found: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Desk:
    """Everything of one set. `pool`: question id -> passage id -> passage; `judgements`: all ever made,
    oldest first.
    """

    set: LabelSet
    questions: tuple[Question, ...]
    pool: Mapping[str, Mapping[str, Pooled]]
    judgements: tuple[Judgement, ...] = ()

    def current(self) -> tuple[Judgement, ...]:
        """Return the current judgements: the newest judgement per question, passage and annotator that was
        not taken back, oldest first. Adjudications are among them, next to their annotator's own.
        """
        return self._current

    def by(self, annotator: str) -> dict[Pair, Judgement]:
        """Return an annotator's current judgements, without adjudications."""
        return {j.pair: j for j in self._current if j.annotator == annotator and j.source != "adjudication"}

    def adjudicated(self) -> dict[Pair, Judgement]:
        """Return the newest adjudication of each passage that has one."""
        return {j.pair: j for j in self._current if j.source == "adjudication"}

    def annotators(self) -> tuple[str, ...]:
        """People and imports of which some judgement stands, by when they began; never a model."""
        own = (j.annotator for j in self._current if j.source in ("person", "import"))
        return tuple(dict.fromkeys(own))

    def models(self) -> tuple[str, ...]:
        """Return the models of which some suggestion stands."""
        return tuple(dict.fromkeys(j.annotator for j in self._current if j.source == "model"))

    @cached_property
    def asked(self) -> dict[str, Question]:
        """Return the questions by id, in order."""
        return {question.id: question for question in self.questions}

    @cached_property
    def _current(self) -> tuple[Judgement, ...]:
        stacks = standing(self.judgements)
        return tuple(sorted((stack[-1] for stack in stacks.values() if stack), key=lambda j: j.number))


def standing(
    judgements: tuple[Judgement, ...] | list[Judgement],
) -> dict[tuple[str, str, str, bool], list[Judgement]]:
    """Return the judgements that were not taken back, oldest first, by question, passage, annotator and
    whether it is an adjudication. `judgements` are given oldest first.
    """
    stacks: dict[tuple[str, str, str, bool], list[Judgement]] = {}
    for one in judgements:
        stack = stacks.setdefault((*one.pair, one.annotator, one.source == "adjudication"), [])
        if one.kind != "withdrawn":
            stack.append(one)
        elif stack:
            stack.pop()
    return stacks
