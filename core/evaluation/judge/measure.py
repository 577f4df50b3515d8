"""Measures how far a model's judgement of relevance agrees with people's, on pairs split by question."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from core.backends.prompting.prompts import JUDGE
from core.domain.background_job import BackgroundJob, jobs
from core.domain.errors import BadInput, Cancelled, ModelFailed, RouteScopeError, Unavailable, describe
from core.domain.types import Passage
from core.evaluation import calibration
from core.evaluation.judge import record as records
from core.evaluation.judge.record import Bounds, JudgeRecord, Negatives, Part
from core.evaluation.statistics import auc, kappa

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.domain.types import Query
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet, Question
    from core.evaluation.judge.source import Labels, Of
    from core.steps import Steps

T = TypeVar("T")
COUNT = 100  # pairs: with half of them held out, an interval of about .25 to either side
SEED = 1
MOST_FAILURES = 3  # one after the other: the model is gone, and each failure may take minutes
LEAST = 10  # questions: two halves of five say little, and fewer say nothing
OF_UNANSWERABLE = 2  # passages of a question without an answer
Search = Callable[["Question", int], Sequence[Passage]]  # (question, how many) -> passages found, best first


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A passage that people graded for a question."""

    question: Question
    passage: Passage
    grade: int


@dataclass(frozen=True, slots=True)
class Parted:
    """Pairs of no common question: those that choose the bounds, and those held out."""

    chosen: tuple[LabelledPair, ...]
    held_out: tuple[LabelledPair, ...]
    negatives: Negatives


Scored = tuple[LabelledPair, float]


def check_model(engine: Engine) -> None:
    """Raise Unavailable with instructions if there is no model."""
    if why := engine.llm().status():
        raise Unavailable(f"the model cannot judge: {why}")


class Judging:
    """Asks the model in use; what was asked before is cached."""

    def __init__(self, engine: Engine, corpus: Corpus, cancel: threading.Event) -> None:
        check_model(engine)
        self._engine, self._corpus, self._cancel = engine, corpus, cancel
        self._failed = 0
        self.unscored = 0
        self.why = ""

    def ask(self, call: Callable[[Steps], tuple[T | None, str]]) -> T | None:
        """Return the value of a call with limits of its own, which returns it or None with the reason; None,
        counted and with the first reason in `why`, if the reply could not be read. Raises ModelFailed for the
        last of several failures in a row.
        """
        if self._cancel.is_set():
            raise Cancelled("stopped by the user")
        do = self._engine.steps(self._corpus, self._cancel)
        try:
            with do.context.asker.asking():
                value, why = call(do)
            self._failed = 0
        except (Cancelled, Unavailable):
            raise
        except RouteScopeError as error:
            self._failed += 1
            if self._failed >= MOST_FAILURES:
                raise ModelFailed(f"{self._failed} replies in a row failed: {describe(error)}") from None
            value, why = None, describe(error)
        if value is None:
            self.unscored += 1
            self.why = self.why or why
        return value

    def score(self, query: Query, passage: Passage, policy: str, relevant_from: int) -> float | None:
        """Return P(Yes) of "relevant by the guidelines `policy`"; see `ask`."""

        def call(do: Steps) -> tuple[float | None, str]:
            given = do.relevance(asked(query), passage, policy, relevant_from)
            return given.grade, given.why

        return self.ask(call)


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
        judging = Judging(self._engine, labels.corpus, self._cancel)
        halves: list[list[Scored]] = [[], []]
        for half, pairs in zip(halves, (parted.chosen, parted.held_out), strict=True):
            for pair in pairs:
                score = judging.score(
                    pair.question.query, pair.passage, labels.policy, labelled.relevant_from
                )
                self.unscored, self.why = judging.unscored, judging.why
                if score is not None:
                    half.append((pair, score))
                self.finished += 1
        self.record = measured(labels, self._engine.llm().model, self._seed, parted, *halves)
        records.write(self.record, self._engine.settings.home)

    def _search(self, question: Question, count: int) -> Sequence[Passage]:
        do = self._engine.steps(self._labels.corpus, self._cancel)
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


def part(labelled: LabelledSet, corpus: Corpus, search: Search, count: int, seed: int) -> Parted:
    """`count` pairs, or all there are, half of their questions in each part.

    Questions take turns, so that as many as possible take part, and each gives one of its passages as it
    falls: kinds of passages are as frequent as people labelled them. BadInput where people graded nothing as
    not relevant and every question has an answer, or there are too few questions.
    """
    ids = sorted({id for question in labelled.questions for id in labelled.qrels.get(question.id, {})})
    known = corpus.by_ids(ids)
    graded = [  # a grade below 0 counts as 0
        [
            LabelledPair(question, known[id], max(0, grade))
            for id, grade in sorted(labelled.qrels.get(question.id, {}).items())
            if id in known
        ]
        for question in labelled.questions
    ]
    negatives: Negatives = "graded"
    if not any(pair.grade < labelled.relevant_from for pairs in graded for pair in pairs):
        negatives = "unanswerable questions"
        without = [question for question in labelled.questions if question.answerable is False]
        if not without:
            raise BadInput(
                f"{labelled.name}: nobody graded a passage as not relevant, so a judge that says Yes to "
                "everything would agree; grade some below "
                f"{labelled.relevant_from} (a passage that nobody judged is not one of them)"
            )
        # no more of them are searched for than are needed
        without.sort(key=lambda question: question.id)
        random.Random(seed).shuffle(without)
        graded += [
            [LabelledPair(question, passage, 0) for passage in search(question, OF_UNANSWERABLE)]
            for question in without[: (count + 1) // 2]
        ]
    draw = random.Random(seed)
    some = sorted((pairs for pairs in graded if pairs), key=lambda pairs: pairs[0].question.id)
    by_question = [draw.sample(pairs, len(pairs)) for pairs in some]
    draw.shuffle(by_question)
    turns = [pair for turn in zip_longest(*by_question) for pair in turn if pair is not None]
    at = labelled.relevant_from
    if negatives != "graded":
        # as many of either kind: how many passages of unanswerable questions there are means nothing
        kinds = ([pair for pair in turns if (pair.grade >= at) is kind] for kind in (True, False))
        turns = [pair for both in zip(*kinds, strict=False) for pair in both]
    drawn = turns[:count]
    asked = sorted({pair.question.id for pair in drawn})
    if len(asked) < LEAST:
        raise BadInput(
            f"{labelled.name}: {len(asked)} questions have graded passages; a judge needs at least {LEAST}, "
            "as one half chooses its bounds and the other checks them"
        )
    # every second question, those with a passage that is not relevant first: both halves need some
    with_no = {pair.question.id for pair in drawn if pair.grade < at}
    draw.shuffle(asked)
    asked.sort(key=lambda id: id not in with_no)
    first = frozenset(asked[::2])
    return Parted(
        tuple(pair for pair in drawn if pair.question.id in first),
        tuple(pair for pair in drawn if pair.question.id not in first),
        negatives,
    )


def choose(scores: Sequence[float], grades: Sequence[int], relevant_from: int, top: int) -> Bounds:
    """Never falling bounds for the grades 1 to `top`, scores from 0 to 1.

    That of `relevant_from` has the highest Cohen's kappa of relevant against not; the others have it for
    their own grade as far as that one leaves them room. BadInput where a kind of passage is missing.
    """
    if len({grade >= relevant_from for grade in grades}) < 2:
        kind = "relevant" if grades and grades[0] >= relevant_from else "not relevant"
        raise BadInput(f"all {len(grades)} passages are {kind}; a bound needs both kinds")
    alone = [_alone(scores, [one >= grade for one in grades]) for grade in range(1, top + 1)]
    below = [*accumulate(alone[relevant_from - 1 :: -1], min)][::-1]
    found = (*below, *[*accumulate(alone[relevant_from - 1 :], max)][1:])
    return tuple(float(one) if np.isfinite(one) else None for one in found)


def graded(score: float, bounds: Bounds) -> int:
    """Return the grade for a score from 0 to 1."""
    return sum(bound is not None and score >= bound for bound in bounds)


def _alone(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Return the threshold of the highest kappa, the lowest of equal ones; out of reach if nothing is
    positive, and 0 if everything is.
    """
    if all(positive) or not any(positive):
        return 0.0 if any(positive) else np.inf
    return max(0.0, calibration.choose(scores, positive, objective="kappa"))


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
    first, second = (
        Part(
            len(half),
            sum(pair.grade >= at for pair, _ in half),
            tuple(sorted({pair.question.id for pair, _ in half})),
        )
        for half in (chosen, held_out)
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
        first,
        second,
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
