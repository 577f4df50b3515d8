"""The order in which an annotator sees the passages of a pool, the next one, and their progress."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from core.evaluation.labels.desk import Desk
from core.evaluation.labels.settled import contest
from core.store.codec import dumps, to_bytes
from core.store.labels import Judgement, Pair

PAUSE_S = 120  # seconds between two judgements from which on the annotator was away
ENOUGH = 10  # intervals between judgements needed to estimate an annotator's pace


@dataclass(frozen=True, slots=True)
class Progress:
    """Passages by what an annotator said of them: a grade, "cannot tell", put off, or nothing yet."""

    judged: int = 0
    cannot: int = 0
    later: int = 0
    left: int = 0

    @property
    def total(self) -> int:
        """Return the number of passages found."""
        return self.judged + self.cannot + self.later + self.left

    @property
    def done(self) -> bool:
        """Return whether nothing is left or deferred."""
        return not self.left and not self.later


def order(desk: Desk, annotator: str, first: Sequence[str] = (), most: int | None = None) -> tuple[Pair, ...]:
    """Every passage found, question by question. Within a question by a hash of set, question, passage and
    annotator: always the same for one person, another for the next, and without a trace of route or rank.

    The questions `first` come before the others, in that order, and in them passages that nobody judged yet.
    With `most`, that many passages on which the routes differ most come before all others, instead.
    """
    if most is not None:
        wanted = frozenset(contest(desk).order()[:most])
        whole = order(desk, annotator)
        return (*(p for p in whole if p in wanted), *(p for p in whole if p not in wanted))
    judged = {one.pair for one in desk.current if one.source != "model"}
    begin = [(id, passage) for id in first for passage in shuffled(desk, id, annotator)]
    places = {id: place for place, id in enumerate(first)}
    begin.sort(key=lambda pair: (places[pair[0]], pair in judged))
    rest = [question.id for question in desk.questions if question.id not in places]
    return (*begin, *((id, passage) for id in rest for passage in shuffled(desk, id, annotator)))


def seconds_a_grade(desk: Desk, annotator: str) -> float | None:
    """Return the median time between one judgement of a person and the next, pauses left out; None if there
    are too few to tell.
    """
    times = [datetime.fromisoformat(one.created) for one in desk.judgements if one.annotator == annotator]
    gaps = [(later - sooner).total_seconds() for sooner, later in pairwise(sorted(times))]
    known = [gap for gap in gaps if 0 < gap < PAUSE_S]
    return median(known) if len(known) >= ENOUGH else None


def shuffled(desk: Desk, question: str, annotator: str) -> list[str]:
    """Return the passages of one question in that order."""

    def place(passage: str) -> bytes:
        return hashlib.sha256(to_bytes(dumps((desk.set.name, question, passage, annotator)))).digest()

    return sorted(desk.pool.get(question, {}), key=place)


def progress(desk: Desk, annotator: str) -> tuple[dict[str, Progress], Progress]:
    """Return an annotator's progress by question and in all."""
    said = desk.by(annotator)
    kinds: dict[str, Counter[str]] = {id: Counter() for id in desk.asked}
    for pair in desk.pairs:
        kinds[pair[0]][said[pair].kind if pair in said else "left"] += 1

    def counted(some: Counter[str]) -> Progress:
        return Progress(some["grade"], some["cannot"], some["later"], some["left"])

    return {id: counted(some) for id, some in kinds.items()}, counted(sum(kinds.values(), Counter()))


def onward(order: Sequence[Pair], said: Mapping[Pair, Judgement], at: Pair | None = None) -> Pair | None:
    """Return the next unlabelled pair of `order` after `at`, wrapping around; then deferred pairs, oldest
    first and `at` last. None when nothing is left.
    """
    here = order.index(at) + 1 if at in order else 0
    for pair in (*order[here:], *order[:here]):
        if pair not in said:
            return pair
    known = set(order)
    later = [one for one in said.values() if one.kind == "later" and one.pair in known]
    return min(later, key=lambda one: (one.pair == at, one.number)).pair if later else None
