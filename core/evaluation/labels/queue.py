"""The order in which an annotator is shown what is to be judged, and how far they are."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.evaluation.labels.types import Desk
from core.store.codec import dumps, to_bytes
from core.store.labels import Judgement, Pair


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


def order(desk: Desk, annotator: str, first: Sequence[str] = ()) -> tuple[Pair, ...]:
    """Every passage found, question by question. Within a question by a hash of set, question, passage and
    annotator: always the same for one person, another for the next, and without a trace of route or rank.

    The questions `first` come before the others, in that order, and in them passages that nobody judged yet.
    """
    judged = {one.pair for one in desk.current() if one.source != "model"}
    begin = [(id, passage) for id in first for passage in shuffled(desk, id, annotator)]
    places = {id: place for place, id in enumerate(first)}
    begin.sort(key=lambda pair: (places[pair[0]], pair in judged))
    rest = [question.id for question in desk.questions if question.id not in places]
    return (*begin, *((id, passage) for id in rest for passage in shuffled(desk, id, annotator)))


def shuffled(desk: Desk, question: str, annotator: str) -> list[str]:
    """Return the passages of one question in that order."""
    return sorted(
        desk.pool.get(question, {}), key=lambda passage: _place(desk.set.name, question, passage, annotator)
    )


def progress(desk: Desk, annotator: str) -> tuple[dict[str, Progress], Progress]:
    """Return an annotator's progress by question and in all."""
    said = desk.by(annotator)
    by = {
        question.id: _counted(said.get((question.id, passage)) for passage in desk.pool.get(question.id, {}))
        for question in desk.questions
    }
    return by, total(list(by.values()))


def total(parts: Sequence[Progress]) -> Progress:
    """Return the sum of several."""
    return Progress(
        sum(one.judged for one in parts),
        sum(one.cannot for one in parts),
        sum(one.later for one in parts),
        sum(one.left for one in parts),
    )


def _counted(said: Iterable[Judgement | None]) -> Progress:
    kinds = Counter(one.kind if one is not None else None for one in said)
    return Progress(kinds["grade"], kinds["cannot"], kinds["later"], kinds[None])


def _place(*parts: str) -> bytes:
    return hashlib.sha256(to_bytes(dumps(parts))).digest()
