"""The labelled pairs that a judge is compared with: drawn, and split by question."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from core.domain.errors import BadInput
from core.domain.types import Passage

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.evaluation.dataset import LabelledSet, Question

# Where the passages that are not relevant are from: people graded them so, or their question is one that the
# documents do not answer. A passage that nobody judged is neither.
Negatives = Literal["graded", "unanswerable questions"]
Search = Callable[["Question", int], Sequence[Passage]]  # (question, how many) -> passages found, best first
LEAST = 10  # questions: two halves of five say little, and fewer say nothing
OF_UNANSWERABLE = 2  # passages of a question without an answer


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


def part(labelled: LabelledSet, corpus: Corpus, search: Search, count: int, seed: int) -> Parted:
    """`count` pairs, or all there are, half of their questions in each part.

    Questions take turns, so that as many as possible take part, and each gives one of its passages as it
    falls: kinds of passages are as frequent as people labelled them. BadInput where people graded nothing as
    not relevant and every question has an answer, or there are too few questions.
    """
    graded = _graded(labelled, corpus)
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
        graded = [*graded, *_unanswerable(without, search, count, seed)]
    draw = random.Random(seed)
    by_question = [draw.sample(pairs, len(pairs)) for pairs in sorted(graded, key=_id) if pairs]
    draw.shuffle(by_question)
    turns = [pair for turn in zip_longest(*by_question) for pair in turn if pair is not None]
    drawn = turns[:count] if negatives == "graded" else _even(turns, labelled.relevant_from, count)
    asked = sorted({pair.question.id for pair in drawn})
    if len(asked) < LEAST:
        raise BadInput(
            f"{labelled.name}: {len(asked)} questions have graded passages; a judge needs at least {LEAST}, "
            "as one half chooses its bounds and the other checks them"
        )
    first = _half(drawn, labelled.relevant_from, draw)
    return Parted(
        tuple(pair for pair in drawn if pair.question.id in first),
        tuple(pair for pair in drawn if pair.question.id not in first),
        negatives,
    )


def _half(drawn: Sequence[LabelledPair], relevant_from: int, draw: random.Random) -> frozenset[str]:
    """Every second question, those with a passage that is not relevant first: both halves need some."""
    with_no = {pair.question.id for pair in drawn if pair.grade < relevant_from}
    asked = sorted({pair.question.id for pair in drawn})
    draw.shuffle(asked)
    asked.sort(key=lambda id: id not in with_no)
    return frozenset(asked[::2])


def _even(turns: Sequence[LabelledPair], relevant_from: int, count: int) -> list[LabelledPair]:
    """As many of either kind: how many passages of unanswerable questions there are means nothing."""
    kinds = ([pair for pair in turns if (pair.grade >= relevant_from) is kind] for kind in (True, False))
    return [pair for both in zip(*kinds, strict=False) for pair in both][:count]


def _id(pairs: Sequence[LabelledPair]) -> str:
    return pairs[0].question.id if pairs else ""


def _graded(labelled: LabelledSet, corpus: Corpus) -> list[list[LabelledPair]]:
    """Return the graded passages of each question that the corpus has; a grade below 0 counts as 0."""
    ids = sorted({id for question in labelled.questions for id in labelled.qrels.get(question.id, {})})
    known = corpus.by_ids(ids)
    return [
        [
            LabelledPair(question, known[id], max(0, grade))
            for id, grade in sorted(labelled.qrels.get(question.id, {}).items())
            if id in known
        ]
        for question in labelled.questions
    ]


def _unanswerable(
    questions: Sequence[Question], search: Search, count: int, seed: int
) -> list[list[LabelledPair]]:
    """Search for questions without an answer, no more of them than are needed."""
    drawn = sorted(questions, key=lambda question: question.id)
    random.Random(seed).shuffle(drawn)
    return [
        [LabelledPair(question, passage, 0) for passage in search(question, OF_UNANSWERABLE)]
        for question in drawn[: (count + 1) // 2]
    ]
