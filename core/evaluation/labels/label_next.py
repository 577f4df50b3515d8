"""The questions to label next to settle a comparison of two routes: those with the most disagreement.

An unjudged passage that both routes show at one rank cannot change which is better; a passage that only one
route shows at the top can. So questions are ordered by the possible effect of their unjudged passages: the
difference of their discounts, summed. Carterette, Allan & Sitaraman 2006, "Minimal test collections for
retrieval evaluation" (SIGIR), with the discount of DCG instead of average precision.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from math import log2
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from core.analysis.rank_overlap import jaccard
from core.domain import people
from core.domain.errors import BadInput
from core.domain.types import Query
from core.evaluation.comparison import SAME
from core.evaluation.dataset import UNDECIDED, Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels.final import final
from core.evaluation.labels.pool import DEPTH, ranks, texts_of
from core.evaluation.labels.settled import SHOWN, contest
from core.store.codec import dumps, to_bytes
from core.store.labels import GRADES, PREFERENCES, Judgement, LabelSet, LabelStore, Pair, Pooled, now

if TYPE_CHECKING:
    from core.corpus.corpus import Corpus
    from core.evaluation.experiment_store import Evaluation
    from core.store import Store

ORDER = "~"  # between an evaluation and two routes, where an address names the order
SUFFIX = "to settle"  # of the name of a set with an evaluation's questions
Where = Literal["evaluation", "label set"]


@dataclass(frozen=True, slots=True)
class Next:
    """A question to label: `id` of it in the evaluation or the label set.

    `change`: how much labels of its unjudged passages could move the difference of the two routes in DCG, for
    a relevant passage of gain 1. `passages`: those, the most decisive first. `apart`: 1 minus the Jaccard
    index of the two rankings. `labelled`: whether a passage of it is relevant by what is judged.
    """

    where: Where
    id: str
    query: Query
    change: float
    apart: float
    passages: tuple[str, ...]
    labelled: bool

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found = asdict(self)
        found["question"] = found.pop("query")["text"]
        return {**found, "passages": list(self.passages), "change": round(self.change, 6)}


def of_evaluation(evaluation: Evaluation, one: str, other: str) -> list[Next]:
    """Return the questions of an evaluation at which both routes ended well, those first that could change
    most.

    Those without a relevant passage yet are among them; those that no label can change, and those that the
    documents do not answer, are not.
    """
    found, set_ = [], evaluation.labelled
    for id, question in evaluation.questions.items():
        by = evaluation.outcomes.get(id, {})
        both = [by[route] for route in (one, other) if route in by and by[route].status == "ok"]
        if len(both) == 2 and _answerable(question):
            places = [{p: at for at, (p, _) in enumerate(outcome.hits[:DEPTH], 1)} for outcome in both]
            judged = set_.qrels.get(id, {})
            found.append(_next("evaluation", id, question.query, places, judged, set_.labelled(id)))
    return ordered(found)


def of_desk(desk: Desk, one: str, other: str) -> list[Next]:
    """Return the questions of a label set that could decide, by the ranks at which the routes found the
    passages of its pool.
    """
    grades = {pair: given.grade for pair, given in final(desk).items() if given.grade is not None}
    found = []
    for question in desk.questions:
        by = {id: dict(pooled.found) for id, pooled in desk.pool.get(question.id, {}).items()}
        places = [
            {id: at[route] for id, at in by.items() if at.get(route, DEPTH + 1) <= DEPTH}
            for route in (one, other)
        ]
        if not all(places) or not _answerable(question):
            continue  # not asked of both: what either would show is not known
        judged = {passage: grade for (id, passage), grade in grades.items() if id == question.id}
        relevant = any(grade >= desk.set.relevant_from for grade in judged.values())
        found.append(_next("label set", question.id, question.query, places, judged, relevant))
    return ordered(found)


def ordered(found: Iterable[Next]) -> list[Next]:
    """Those that labels could change, the largest change first, then the farthest apart."""
    return sorted((one for one in found if one.change > SAME), key=lambda one: (-one.change, -one.apart))


def begin(
    store: Store, evaluation: Evaluation, one: str, other: str, corpus: Corpus
) -> tuple[str, tuple[str, ...]]:
    """Return the label set of an evaluation with the passages that decide between two routes in its pool, and
    the ids of its questions, the most decisive first. It is the set used by the evaluation. If its labels
    come from elsewhere, a set is created from its questions and judgements, which count as an import, and
    reused later. Raises BadInput if there is nothing to label or the set of that name is over another corpus.
    """
    found = of_evaluation(evaluation, one, other)
    if not found:
        raise BadInput(
            f"no unjudged passage among the first {DEPTH} decides between {one} and {other}: labels cannot "
            "change their order here"
        )
    people.require("edit")
    name = evaluation.spec.get("labels") or _own(store, evaluation, corpus)
    desk = desks.load(store, name)
    if desk.set.corpus != corpus.name:
        raise BadInput(f"label set {name} is over corpus {desk.set.corpus}, not {corpus.name}")
    ids = {question.query: question.id for question in desk.questions}
    texts = texts_of(evaluation, corpus, {item.id: item.passages for item in found})
    pool = {}
    for item in found:
        if item.query in ids:
            by = evaluation.outcomes[item.id]
            at = ranks((route, [id for id, _ in by[route].hits[:DEPTH]]) for route in (one, other))
            pool[ids[item.query]] = [
                Pooled(texts[id], tuple(at[id].items())) for id in item.passages if id in texts
            ]
    desks.add_to_pool(store, name, pool)
    return name, tuple(pool)


def order(desk: Desk, evaluation: Evaluation, one: str, other: str) -> tuple[str, ...]:
    """Return the questions of a set whose labels help to decide between two routes, most decisive first: as
    the evaluation ranked them, and by the set's own pool for questions not asked in it.
    """
    ids = {question.query: question.id for question in desk.questions}
    found = [item for item in of_evaluation(evaluation, one, other) if item.query in ids]
    known = {ids[item.query] for item in found}
    found += [item for item in of_desk(desk, one, other) if item.id not in known]
    return tuple(dict.fromkeys(ids[item.query] for item in ordered(found)))


def _answerable(question: Question) -> bool:
    """Return whether the documents may answer the question; questions marked unanswerable need no label."""
    return question.answerable is not False and question.mode not in UNDECIDED


def _next(
    where: Where,
    id: str,
    query: Query,
    places: Sequence[Mapping[str, int]],
    judged: Collection[str],
    labelled: bool,
) -> Next:
    """`places` are both routes' rankings: passage -> its rank from 1."""
    # the discounts of DCG (Järvelin & Kekäläinen 2002), 0 for a passage that is not shown
    mine, theirs = ({id: 1 / log2(rank + 1) for id, rank in ranks.items()} for ranks in places)
    weights = {
        passage: abs(mine.get(passage, 0.0) - theirs.get(passage, 0.0))
        for passage in dict.fromkeys((*mine, *theirs))
        if passage not in judged
    }
    decisive = sorted((p for p, weight in weights.items() if weight > SAME), key=lambda p: (-weights[p], p))
    apart = 1 - jaccard(list(mine), list(theirs), DEPTH) if mine or theirs else 0.0
    return Next(where, id, query, sum(weights.values()), apart, tuple(decisive), labelled)


def _own(store: Store, evaluation: Evaluation, corpus: Corpus) -> str:
    """Return the set made of the evaluation's questions and judgements, made now if it is not there."""
    labelled = evaluation.labelled
    name = desks.clean_name(f"{labelled.name[:48]} {SUFFIX}", "label set")
    if any(one.name == name for one in desks.sets(store)):
        return name
    judged = {id: by for question in labelled.questions if (by := labelled.qrels.get(id := question.id))}
    texts = corpus.by_ids(sorted({passage for by in judged.values() for passage in by}))
    if beyond := sorted({grade for by in judged.values() for grade in by.values()} - set(GRADES)):
        raise BadInput(
            f"{labelled.name} has grades that label sets do not have ({beyond[0]}); label its questions in a "
            "set made on the Label page"
        )
    who = f"labels of {labelled.name}"[:64]
    said = [
        desks.clean(Judgement(id, passage, who, "import", "grade", grade))
        for id, by in judged.items()
        for passage, grade in by.items()
        if passage in texts
    ]
    fresh = LabelSet(name, corpus.name, desks.DEFAULT, labelled.relevant_from, now())
    asked = desks.clean_questions(labelled.questions)
    pool = {id: [Pooled(texts[p]) for p in by if p in texts] for id, by in judged.items()}

    def work(labels: LabelStore) -> None:
        labels.create(fresh, map(desks.document, asked))
        labels.add_to_pool(name, pool)
        labels.judge(name, said)

    store.change_labels(work)
    return name


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


def order_for(
    desk: Desk, annotator: str, first: Sequence[str] = (), most: int | None = None
) -> tuple[Pair, ...]:
    """Every passage found, question by question. Within a question by a hash of set, question, passage and
    annotator: always the same for one person, another for the next, and without a trace of route or rank.

    The questions `first` come before the others, in that order, and in them passages that nobody judged yet.
    Questions that documents are not asked for, such as small talk, come last.
    With `most`, that many passages on which the routes differ most come before all others, instead. Drawn
    questions come in their drawn order, passages of traffic in that of their sample.
    """
    if any(route == SHOWN for by in desk.pool.values() for one in by.values() for route, _ in one.found):
        return tuple(contest(desk).order())
    if desk.drawn:
        first, most = desk.drawn, None
    if most is not None:
        wanted = frozenset(contest(desk).order()[:most])
        whole = order_for(desk, annotator)
        return (*(p for p in whole if p in wanted), *(p for p in whole if p not in wanted))
    judged = {one.pair for one in desk.current if one.source != "model"}
    begin = [(id, passage) for id in first for passage in shuffled(desk, id, annotator)]
    places = {id: place for place, id in enumerate(first)}
    begin.sort(key=lambda pair: (places[pair[0]], pair in judged))
    asked = sorted(desk.questions, key=lambda one: one.mode in UNDECIDED)
    rest = [question.id for question in asked if question.id not in places]
    return (*begin, *((id, passage) for id in rest for passage in shuffled(desk, id, annotator)))


def seconds_a_grade(desk: Desk, annotator: str) -> float | None:
    """Return the median time between one judgement of a person and the next, pauses left out; None if there
    are too few to tell.
    """
    own = (one for one in desk.judgements if one.annotator == annotator and one.kind not in PREFERENCES)
    times = [datetime.fromisoformat(one.created) for one in own]
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
