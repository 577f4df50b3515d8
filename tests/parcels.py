"""A corpus of parcels with labels of people, and models that judge it well or blindly."""

import re

from core.domain.types import Query
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.labels import desk as desks
from core.store.labels import Judgement, Pooled

COUNT = 40
TEXTS = {f"p{n:02}": f"Parcel number {n} is sent from depot {n} on day {n}." for n in range(COUNT)}
QUESTIONS = tuple(
    Question(f"q{n:02}", Query(f"On which day is parcel number {n} sent?")) for n in range(COUNT)
)


def right(request):
    """Yes where the passage has the number of the question."""
    text = request.messages[-1].content
    number = re.search(r"parcel number (\d+) sent", text)[1]
    return {"Yes": 0.9, "No": 0.1} if f"Parcel number {number} is" in text else {"Yes": 0.2, "No": 0.8}


def blind(request):
    """The same whatever is asked, but for its length."""
    yes = 0.3 + len(request.messages[-1].content) % 7 / 20
    return {"Yes": yes, "No": 1 - yes}


def labelled(qrels, relevant_from=2, questions=QUESTIONS):
    return LabelledSet("parcels", questions, qrels, relevant_from)


def passages(corpus):
    """Number -> the id of the passage that names it."""
    return {int(re.search(r"number (\d+) ", p.text)[1]): p.id for _, p, _ in corpus.everything()}


def people(corpus):
    """Each question's own passage is relevant, two others are not."""
    ids = passages(corpus)
    return {f"q{n:02}": {ids[n]: 3, ids[(n + 1) % COUNT]: 0, ids[(n + 2) % COUNT]: 1} for n in range(COUNT)}


def label(engine, name="one"):
    """A label set in which Ann graded what `people` says."""
    desks.create(engine.store, name, "tiny", QUESTIONS)
    corpus = engine.corpus("tiny")
    grades = people(corpus)
    known = corpus.by_ids(sorted({id for some in grades.values() for id in some}))
    desks.add_to_pool(
        engine.store, name, {q: [Pooled(known[id]) for id in some] for q, some in grades.items()}
    )
    said = [
        Judgement(q, id, "Ann", "person", "grade", g) for q, some in grades.items() for id, g in some.items()
    ]
    desks.judge_all(engine.store, name, said)
