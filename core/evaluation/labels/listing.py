"""Every label of a set as a line to read: its grade, its origin, and its state in the corpus now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from core.corpus.corpus import Corpus
from core.corpus.markdown import name_of
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import Final, Tied
from core.store.labels import Pair

MEDIAN = "lower median of different grades"


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


def lines(
    desk: Desk, finals: Mapping[Pair, Final], tied: Tied | None, corpus: Corpus | None = None
) -> list[Line]:
    """Return a line for every passage: questions in their order, the best grades first, unjudged ones last.

    Without `tied` and `corpus` (it cannot be opened) `now` is empty and passages have their titles.
    """
    spoken: dict[Pair, list[str]] = {}
    for said in desk.current:
        if said.source != "model":
            words = {"cannot": "can't tell", "later": "later"}.get(said.kind, str(said.grade))
            who = f"{said.annotator} (final)" if said.source == "adjudication" else said.annotator
            note = f" ({said.note})" if said.note else ""
            spoken.setdefault(said.pair, []).append(f"{who}: {words}{note}")
    found = []
    for id, question in desk.asked.items():
        own = [finals[id, passage] for passage in desk.pool[id] if (id, passage) in finals]
        for one in sorted(own, key=lambda one: (one.grade is None, -(one.grade or 0), one.passage)):
            pair, passage = (id, one.passage), desk.pool[id][one.passage].passage
            found.append(
                Line(
                    id,
                    question.query.text,
                    one.passage,
                    name_of(corpus, passage) if corpus is not None else passage.title,
                    passage.doc_id,
                    one.grade,
                    MEDIAN if one.how == "median" else one.how,
                    "; ".join(spoken.get(pair, ())),
                    _now(pair, tied, corpus) if tied is not None else "",
                )
            )
    return found


def counts(desk: Desk, finals: Mapping[Pair, Final]) -> Counts:
    """Return how many labels there are, by origin."""
    graded = [(one.question, one.grade) for one in finals.values() if one.grade is not None]
    judged, relevant = ({q for q, grade in graded if grade >= least} for least in (0, desk.set.relevant_from))
    return Counts(
        len(finals),
        Counter(one.how for one in finals.values()),
        len(judged - relevant),
        len(desk.questions) - len(judged),
    )


def _now(pair: Pair, tied: Tied, corpus: Corpus | None) -> str:
    if pair in tied.carried:
        by = "its place" if pair in tied.moved else "its words"
        found = corpus.by_ids(tied.carried[pair]) if corpus is not None else {}
        names = [name_of(corpus, found[id]) if corpus and id in found else id for id in tied.carried[pair]]
        return f"carried over by {by} to {', '.join(names)}"
    if pair in tied.lost:
        return "lost: the corpus has no such text"
    return "its words have changed since" if pair in tied.changed else ""
