"""Pairs of question and passage to fit weights on: the lists that a route would fuse, with the labels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.backends.fusion_weights import FEATURES
from core.domain.errors import Cancelled
from core.domain.types import Ranking, Scored
from core.steps import Memo, Steps
from core.steps.fitted_fusion import features
from core.steps.trace import Trace

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet

BASIC = ("bm25", "dense")  # always searched: the fusions that are compared with fuse these
Numbers = NDArray[np.float64]
Progress = Callable[[int, int], None]  # (questions done, of how many)


@dataclass(frozen=True, slots=True)
class Collected:
    """The lists found for each labelled question of a set, by question and list, whole and as searched."""

    labelled: LabelledSet
    corpus: str
    fingerprint: str
    embedder: str
    lists: Mapping[str, Mapping[str, Ranking]]

    def dropped(self, question: str) -> str | None:
        """Return the passage that is excluded from a question's results: its own, if the set has that
        rule.
        """
        own = self.labelled.drop_self and question not in self.labelled.qrels.get(question, {})
        return question if own else None

    def scored(self, question: str, ranking: Ranking) -> Scored:
        """Return a ranking as it counts for a question."""
        drop = self.dropped(question)
        return tuple((hit.passage.id, hit.score) for hit in ranking if hit.passage.id != drop)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """n pairs of question and passage: `x` their features (n, lists x features), `relevant` (n,), `of` the
    question's place in `questions` (n,), and the passage of each.
    """

    questions: tuple[str, ...]
    lists: tuple[str, ...]
    x: Numbers
    relevant: NDArray[np.bool_]
    of: NDArray[np.int64]
    passages: tuple[str, ...]

    def rankings(self, scores: Numbers) -> dict[str, Scored]:
        """Return the passages of each question by `scores`, best first, ties by id."""
        found: dict[str, list[tuple[str, float]]] = {}
        for passage, of, score in zip(self.passages, self.of.tolist(), scores.tolist(), strict=True):
            found.setdefault(self.questions[of], []).append((passage, score))
        return {
            question: tuple(sorted(some, key=lambda one: (-one[1], one[0])))
            for question, some in found.items()
        }


@dataclass(frozen=True, slots=True)
class Counts:
    """The labels at hand: `questions` with a relevant passage; `relevant` pairs of question and passage that
    some list found, of `labelled` in all; `passages` found, of which `unjudged` have no label and count as
    not relevant.
    """

    questions: int
    relevant: int
    labelled: int
    passages: int
    unjudged: int


def collect(
    engine: Engine,
    labelled: LabelledSet,
    corpus_name: str,
    lists: Sequence[str],
    progress: Progress = lambda _done, _of: None,
    ended: Callable[[], bool] = lambda: False,
) -> Collected:
    """Search for every labelled question as the route would; no model is asked.

    Raises Unavailable where something that `lists` need is not made, Cancelled when `ended` turns true.
    """
    corpus = engine.corpus(corpus_name)
    names = tuple(dict.fromkeys((*BASIC, *lists)))
    asked = [question for question in labelled.questions if labelled.labelled(question.id)]
    found: dict[str, dict[str, Ranking]] = {}
    for number, question in enumerate(asked):
        progress(number, len(asked))
        if ended():
            raise Cancelled("stopped by the user")
        do = Steps(engine.context(corpus, None, Trace(), Memo(), threading.Event()))
        found[question.id] = dict(zip(names, do.found_by(names, question.query.text), strict=True))
    progress(len(asked), len(asked))
    return Collected(labelled, corpus_name, corpus.fingerprint, corpus.info.embedder, found)


def pairs(collected: Collected, questions: Sequence[str], lists: Sequence[str]) -> Pairs:
    """Return the pairs of `questions` with every passage that some of `lists` found.

    A passage is relevant if it is graded as such. One graded lower, or not judged at all, is not: labels that
    are missing teach that a passage is wrong, which is the more often true the deeper the labels were pooled.
    """
    labelled = collected.labelled
    rows: list[list[float]] = []
    facts: list[tuple[bool, int, str]] = []
    absent = (0.0,) * len(FEATURES)
    for number, question in enumerate(questions):
        known = [features(collected.lists[question][name]) for name in lists]
        grades, drop = labelled.qrels.get(question, {}), collected.dropped(question)
        for id in dict.fromkeys(id for one in known for id in one):
            if id != drop:
                rows.append([value for one in known for value in one.get(id, absent)])
                facts.append((grades.get(id, 0) >= labelled.relevant_from, number, id))
    relevant: list[Any]
    of: list[Any]
    ids: list[Any]
    relevant, of, ids = map(list, zip(*facts, strict=True)) if facts else ([], [], [])
    x = np.array(rows, np.float64).reshape(len(rows), len(lists) * len(FEATURES))
    return Pairs(
        tuple(questions), tuple(lists), x, np.array(relevant, bool), np.array(of, np.int64), tuple(ids)
    )


def counts(collected: Collected, found: Pairs) -> Counts:
    """Count the labels to fit on."""
    labelled = collected.labelled
    grades = [labelled.qrels.get(question, {}) for question in found.questions]
    judged = sum(passage in grades[of] for passage, of in zip(found.passages, found.of, strict=True))
    return Counts(
        len(found.questions),
        int(found.relevant.sum()),
        sum(grade >= labelled.relevant_from for one in grades for grade in one.values()),
        len(found.passages),
        len(found.passages) - judged,
    )
