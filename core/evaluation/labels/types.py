"""A label set as a whole: its questions, the passages found for them, and their judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from core.evaluation.dataset import Question
from core.store.labels import Judgement, LabelSet, Pair, Pooled, standing


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
