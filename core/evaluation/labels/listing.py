"""Every label of a set as a line to read: its grade, its origin, and its state in the corpus now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.corpus.markdown import NamedCorpus, name_of
from core.domain.types import Passage
from core.evaluation.labels.final import Final, Tied
from core.evaluation.labels.types import Desk
from core.store.labels import Judgement, Pair

HOW = {
    "adjudicated": "adjudicated",
    "one grade": "one grade",
    "all agree": "all agree",
    "median": "lower median of different grades",
    "unjudged": "unjudged",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One passage of the pool. `said`: each annotator's judgement, with notes. `now`: its state after the
    corpus was chunked again, "" if it is unchanged.
    """

    question: str
    text: str
    passage: str
    title: str
    doc: str
    grade: int | None
    how: str
    said: str
    now: str


@dataclass(frozen=True, slots=True)
class Counts:
    """`passages` in the pool; `how` each label came about; `without`: questions in which no passage is
    relevant by what is judged; `unasked`: those in which nothing is judged.
    """

    passages: int
    how: Mapping[str, int]
    without: int
    unasked: int


class PoolCorpus(NamedCorpus, Protocol):
    """The corpus methods that listing a pool needs."""

    def by_ids(self, ids: Sequence[str], /) -> dict[str, Passage]: ...


def lines(
    desk: Desk, finals: Mapping[Pair, Final], tied: Tied | None, corpus: PoolCorpus | None = None
) -> list[Line]:
    """Return a line for every passage: questions in their order, the best grades first, unjudged ones last.

    Without `tied` and `corpus` (it cannot be opened) `now` is empty and passages have their titles.
    """
    spoken: dict[Pair, list[Judgement]] = {}
    for one in desk.current():
        if one.source != "model":
            spoken.setdefault(one.pair, []).append(one)
    places = {question.id: place for place, question in enumerate(desk.questions)}
    ordered = sorted(
        finals.values(),
        key=lambda one: (places[one.question], one.grade is None, -(one.grade or 0), one.passage),
    )
    return [_line(desk, one, spoken.get((one.question, one.passage), []), tied, corpus) for one in ordered]


def counts(desk: Desk, finals: Mapping[Pair, Final]) -> Counts:
    """Return how many labels there are, by origin."""
    relevant = {
        one.question
        for one in finals.values()
        if one.grade is not None and one.grade >= desk.set.relevant_from
    }
    judged = {one.question for one in finals.values() if one.grade is not None}
    return Counts(
        len(finals),
        Counter(one.how for one in finals.values()),
        len(judged - relevant),
        len(desk.questions) - len(judged),
    )


def _line(
    desk: Desk, one: Final, spoken: list[Judgement], tied: Tied | None, corpus: PoolCorpus | None
) -> Line:
    passage = desk.pool[one.question][one.passage].passage
    return Line(
        one.question,
        desk.asked[one.question].query.text,
        one.passage,
        name_of(corpus, passage) if corpus is not None else passage.title,
        passage.doc_id,
        one.grade,
        HOW[one.how],
        "; ".join(map(_said, spoken)),
        _now((one.question, one.passage), tied, corpus) if tied is not None else "",
    )


def _said(one: Judgement) -> str:
    words = {"cannot": "can't tell", "later": "later"}.get(one.kind, str(one.grade))
    who = f"{one.annotator} (final)" if one.source == "adjudication" else one.annotator
    return f"{who}: {words}" + (f" ({one.note})" if one.note else "")


def _now(pair: Pair, tied: Tied, corpus: PoolCorpus | None) -> str:
    if pair in tied.carried:
        by = "its place" if pair in tied.moved else "its words"
        found = corpus.by_ids(tied.carried[pair]) if corpus is not None else {}
        names = [name_of(corpus, found[id]) if corpus and id in found else id for id in tied.carried[pair]]
        return f"carried over by {by} to {', '.join(names)}"
    if pair in tied.lost:
        return "lost: the corpus has no such text"
    return "its words have changed since" if pair in tied.changed else ""
