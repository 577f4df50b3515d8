"""Measures how far a model's judgement of relevance agrees with people's."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from core.backends.prompting.prompts import JUDGE
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Cancelled, ModelFailed, RouteScopeError, Unavailable, describe
from core.evaluation.judge import record as records
from core.evaluation.judge.bounds import choose, graded
from core.evaluation.judge.pairs import LabelledPair, Parted, part
from core.evaluation.judge.record import JudgeRecord, Part
from core.evaluation.kappa import kappa
from core.steps import Memo, Steps
from core.steps.trace import Trace

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.domain.types import Passage, Query
    from core.engine.engine import Engine
    from core.evaluation.dataset import Question
    from core.evaluation.judge.source import Labels, Of

COUNT = 100  # pairs: with half of them held out, an interval of about .25 to either side
SEED = 1
MOST_FAILURES = 3  # one after the other: the model is gone, and each failure may take minutes
Scored = tuple[LabelledPair, float]


def check_model(engine: Engine) -> None:
    """Raise Unavailable with instructions if there is no model."""
    if why := engine.llm().status():
        raise Unavailable(f"the model cannot judge: {why}")


class Judging:
    """Scores passages with the model in use and the guidelines `policy`; what was asked before is cached."""

    def __init__(
        self, engine: Engine, corpus: Corpus, policy: str, relevant_from: int, cancel: threading.Event
    ) -> None:
        check_model(engine)
        self._engine, self._corpus, self._cancel = engine, corpus, cancel
        self._policy, self._relevant_from = policy, relevant_from
        self._failed = 0
        self.unscored = 0
        self.why = ""

    def score(self, query: Query, passage: Passage) -> float | None:
        """P(Yes) of "relevant by these guidelines"; None, counted and with the first reason in `why`, where
        the reply was not to be read. Raises ModelFailed for the last of several failures in a row.
        """
        engine = self._engine
        context = engine.context(self._corpus, None, Trace("judge"), Memo(), self._cancel)
        try:
            with context.asker.asking():
                given = Steps(context).relevance(asked(query), passage, self._policy, self._relevant_from)
            value, why = given.grade, given.why
            self._failed = 0
        except (Cancelled, Unavailable):
            raise
        except RouteScopeError as error:
            self._failed += 1
            if self._failed >= MOST_FAILURES:
                raise ModelFailed(f"{self._failed} passages in a row failed: {describe(error)}") from None
            value, why = None, describe(error)
        if value is None:
            self.unscored += 1
            self.why = self.why or why
        return value


class Measuring(BackgroundJob):
    """A judge's agreement with the labels of a set, in a thread; at its end `record` is stored.

    The model's replies are cached, so that one that was stopped goes on where it was.
    """

    kind = "judge"

    def __init__(self, engine: Engine, labels: Labels, count: int, seed: int) -> None:
        super().__init__(labels.name, count, engine.settings.home)
        self.record: JudgeRecord | None = None
        self.unscored, self.why = 0, ""
        self._engine, self._labels, self._count, self._seed = engine, labels, count, seed

    def _do(self) -> None:
        self.stage = "drawing passages"
        labels, labelled = self._labels, self._labels.labelled
        parted = part(labelled, labels.corpus, self._search, self._count, self._seed)
        self.total = len(parted.chosen) + len(parted.held_out)
        self.stage = "judging"
        judging = Judging(self._engine, labels.corpus, labels.policy, labelled.relevant_from, self._cancel)
        halves: list[list[Scored]] = [[], []]
        for half, pairs in zip(halves, (parted.chosen, parted.held_out), strict=True):
            for pair in pairs:
                if self._cancel.is_set():
                    raise Cancelled("stopped by the user")
                score = judging.score(pair.question.query, pair.passage)
                self.unscored, self.why = judging.unscored, judging.why
                if score is not None:
                    half.append((pair, score))
                self.finished += 1
        self.record = measured(labels, self._engine.llm().model, self._seed, parted, *halves)
        records.write(self.record, self._engine.settings.home)

    def _search(self, question: Question, count: int) -> Sequence[Passage]:
        do = Steps(self._engine.context(self._labels.corpus, None, Trace(), Memo(), self._cancel))
        text = question.query.text
        return [hit.passage for hit in do.rrf((do.sparse(text), do.dense(text)))[:count]]


def begin(engine: Engine, labels: Labels, *, count: int = COUNT, seed: int = SEED) -> Measuring:
    """Begin to measure, or return the running measurement. Raises Unavailable if there is no model."""
    check_model(engine)
    return jobs.begin(
        Measuring,
        (str(engine.settings.home), labels.of, labels.name),
        lambda: Measuring(engine, labels, count, seed),
    )


def under_way(engine: Engine, of: Of, name: str) -> Measuring | None:
    """Return the last job that this process began for a set."""
    return jobs.latest(Measuring, (str(engine.settings.home), of, name))


def measured(
    labels: Labels,
    model: str,
    seed: int,
    parted: Parted,
    chosen: Sequence[Scored],
    held_out: Sequence[Scored],
) -> JudgeRecord:
    """Return the record: bounds from `chosen`, everything else from `held_out`. Raises BadInput if either
    lacks relevant passages or others.
    """
    at = labels.labelled.relevant_from
    for half in (chosen, held_out):
        if len({pair.grade >= at for pair, _ in half}) < 2:
            relevant = sum(pair.grade >= at for pair, _ in half)
            raise BadInput(
                f"{labels.name}: {relevant} of {len(half)} passages of one half are relevant; both halves "
                "need relevant passages and others: label more, or give a larger --count"
            )
    top = max(at, *(pair.grade for pair, _ in (*chosen, *held_out)))
    bounds = choose([score for _, score in chosen], [pair.grade for pair, _ in chosen], at, top)
    graded_pairs = [(pair.question.id, pair.grade, graded(score, bounds)) for pair, score in held_out]
    levels = range(top + 1)
    confusion = np.zeros((top + 1, top + 1), int)
    for _, people, judge in graded_pairs:
        confusion[people, judge] += 1
    return JudgeRecord(
        labels.of,
        labels.name,
        model,
        JUDGE.name,
        labels.policy,
        at,
        seed,
        parted.negatives,
        bounds,
        _part(chosen, at),
        _part(held_out, at),
        kappa([(q, int(a >= at), int(b >= at)) for q, a, b in graded_pairs], (0, 1)),
        kappa(graded_pairs, levels, "quadratic"),
        tuple(tuple(map(int, row)) for row in confusion),
        auc([score for _, score in held_out], [pair.grade >= at for pair, _ in held_out]),
        len(parted.chosen) + len(parted.held_out) - len(chosen) - len(held_out),
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def asked(query: Query) -> str:
    """Return a question as the judge is shown it: after its turns, without which a follow-up says nothing."""
    said = "\n".join(f"{turn.role}: {turn.text}" for turn in query.history[-6:])
    return f"{query.text}\n(asked after this conversation:\n{said})" if said else query.text


def _part(half: Sequence[Scored], relevant_from: int) -> Part:
    questions = tuple(sorted({pair.question.id for pair, _ in half}))
    return Part(len(half), sum(pair.grade >= relevant_from for pair, _ in half), questions)


def auc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Return the area under the ROC curve; None unless both kinds occur."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, scores)) if len(set(positive)) == 2 else None
