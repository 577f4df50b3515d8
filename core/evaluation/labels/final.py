"""The grade that counts for each passage, and a label set as one to measure routes with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from reprlib import repr as short
from typing import Literal

from core.corpus.corpus import Corpus
from core.corpus.markdown import name_of
from core.corpus.source import base_of
from core.corpus.types import Document
from core.domain.errors import BadInput
from core.domain.relevance import is_unmatched
from core.domain.types import Passage, Query
from core.evaluation.counting import HALF, Place, on_passage, place
from core.evaluation.dataset import Evidence, LabelledSet
from core.evaluation.labels import desk as desks
from core.evaluation.labels.desk import Desk
from core.evaluation.labels_file import holding
from core.evaluation.question_folder import Qrels, merge
from core.evaluation.templating import sentences
from core.store import Store
from core.store.labels import GRADES, Judgement, Pair

MEDIAN = "lower median of different grades"
How = Literal["adjudicated", "one grade", "all agree", "median", "unjudged"]


@dataclass(frozen=True, slots=True)
class Final:
    """The grade that counts for a passage, None if it is unjudged; `of` are the judgements it is based on."""

    question: str
    passage: str
    grade: int | None
    how: How
    of: tuple[Judgement, ...] = ()


@dataclass(slots=True)
class Tied:
    """The labels as passages of a corpus. `carried`: the judged passages whose id is gone, with the passages
    that now have their words or their place. `lost`: those without any match. `changed`: ids that still
    exist, with other words than were judged. `outside`: pipelines' passages that the corpus never had; they
    keep their labels.
    """

    qrels: Qrels = field(default_factory=dict)
    carried: dict[Pair, tuple[str, ...]] = field(default_factory=dict)
    moved: list[Pair] = field(default_factory=list)  # of `carried`: by their place, as the words are gone
    lost: list[Pair] = field(default_factory=list)
    changed: list[Pair] = field(default_factory=list)
    outside: list[Pair] = field(default_factory=list)
    places: dict[str, tuple[Place, ...]] = field(default_factory=dict)  # of questions with labelled documents


def final(desk: Desk) -> dict[Pair, Final]:
    """Return the final grade of every passage of the pool: the newest adjudication if there is one, else the
    lower median of the grades of people and imports. "Cannot tell" and deferred passages count as unjudged,
    and a model's suggestions do not count.
    """
    settled = desk.adjudicated()
    given: dict[Pair, list[Judgement]] = defaultdict(list)
    for one in desk.current:
        if one.kind == "grade" and one.source in ("person", "import"):
            given[one.pair].append(one)
    found = {}
    for pair in desk.pairs:
        if pair in settled:
            found[pair] = Final(*pair, settled[pair].grade, "adjudicated", (settled[pair],))
            continue
        if not (of := tuple(given[pair])):
            found[pair] = Final(*pair, None, "unjudged")
            continue
        grades = sorted(one.grade for one in of if one.grade is not None)
        how: How = "one grade" if len(grades) == 1 else "all agree" if len(set(grades)) == 1 else "median"
        found[pair] = Final(*pair, grades[(len(grades) - 1) // 2], how, of)
    return found


def labelled_set(
    store: Store, name: str, corpus: Corpus, split: str = "all"
) -> tuple[LabelledSet, list[str]]:
    """Return a label set tied to the passages of `corpus` as indexed now, and remarks on it.

    `split` keeps the questions of one split; "all" keeps every one. If no question has a split, all are of
    "test", as in a file of questions. BadInput if there is no such set or
    split, nothing of it is graded, or the corpus has none of the judged passages.
    """
    desk = desks.load(store, name)
    if split == "test" and not any(q.split for q in desk.questions):
        split = "all"
    asked = [q for q in desk.questions if split in ("all", q.split)]
    if not asked:
        known = ", ".join(sorted({q.split or "none" for q in desk.questions}))
        raise BadInput(
            f"label set {short(name)} has no questions of split {split!r}; there are: {known}, all"
        )
    kept = {q.id for q in asked}
    finals = {pair: one for pair, one in final(desk).items() if pair[0] in kept}
    judged = sum(one.grade is not None for one in finals.values())
    answered = any(question.answers or question.answerable is False for question in asked)
    if not judged and not answered:  # answers can be measured without passages
        of = "" if split == "all" else f" of split {split!r}"
        raise BadInput(
            f"label set {short(name)} has no graded passage{of} yet; judge some on the Label page, or bring "
            "judgements in: labels import"
        )
    tied = tie(desk, finals, corpus)
    if judged and len(tied.lost) == judged:
        raise BadInput(
            f"corpus {corpus.name} holds none of the {judged} judged passages of label set {short(name)}, "
            f"for example {short(tied.lost[0][1])}; the set was made over {desk.set.corpus}"
        )
    labelled = LabelledSet(
        desk.set.name, tuple(asked), tied.qrels, desk.set.relevant_from, places=tied.places
    )
    return labelled, in_words(desk, finals, tied, corpus.name)


def of_query(store: Store, name: str, corpus: Corpus, query: Query) -> LabelledSet:
    """Return what a label set has of one question as asked, tied to `corpus`; it may have no labels."""
    desk = desks.load(store, name)
    asked = tuple(one for one in desk.questions if one.query == query)
    ids = {one.id for one in asked}
    tied = tie(desk, {pair: one for pair, one in final(desk).items() if pair[0] in ids}, corpus)
    return LabelledSet(name, asked, tied.qrels, desk.set.relevant_from, places=tied.places)


def tie(desk: Desk, finals: Mapping[Pair, Final], corpus: Corpus) -> Tied:
    """Return the grades that count as passages of `corpus` now.

    An id that is still there keeps its grade. Else the grade goes where the words are: to the passages of the
    document that hold at least half of them, else to the one with most; and where the words have changed, in
    the same way to the passages at that place. A passage that was judged itself takes over no other grade; of
    several taken over the highest holds.
    """
    graded = {pair: one.grade for pair, one in finals.items() if one.grade is not None}
    there = corpus.by_ids(sorted({passage for _, passage in graded}))
    tied, taken = Tied(), Qrels()
    whole: dict[str, list[Place]] = {}
    documents: dict[str, tuple[Document, list[Passage]] | None] = {}
    for (question, id), grade in graded.items():
        judged = desk.pool[question][id].passage
        if id in there:
            merge(tied.qrels, {question: {id: grade}})
            if there[id].text.split() != judged.text.split():
                tied.changed.append((question, id))
            continue
        if judged.doc_id not in documents:
            try:
                documents[judged.doc_id] = corpus.document(judged.doc_id)
            except BadInput:
                documents[judged.doc_id] = None  # counted among what is lost
        if id == judged.doc_id and (opened := documents[id]) is not None and opened[1]:
            label = place(id, (0, len(opened[0].text)), grade, opened[1], whole=True)
            whole.setdefault(question, []).append(label)
            merge(tied.qrels, {question: dict.fromkeys(label.passages, grade)})
            continue
        targets, by_words = _targets(judged, documents[judged.doc_id])
        if targets:
            tied.carried[question, id] = targets
            if not by_words:
                tied.moved.append((question, id))
            merge(taken, {question: dict.fromkeys(targets, grade)})
        elif is_unmatched(id):
            merge(tied.qrels, {question: {id: grade}})
            tied.outside.append((question, id))
        else:
            tied.lost.append((question, id))
    for question, labels in taken.items():
        own = tied.qrels.get(question, {})
        merge(tied.qrels, {question: {id: grade for id, grade in labels.items() if id not in own}})
    for question, found in whole.items():
        in_whole = {id for label in found for id in label.passages}
        rest = corpus.by_ids([id for id in tied.qrels[question] if id not in in_whole])
        others = (on_passage(passage, tied.qrels[question][id]) for id, passage in rest.items())
        tied.places[question] = (*found, *others)
    return tied


def in_words(desk: Desk, finals: Mapping[Pair, Final], tied: Tied, corpus: str) -> list[str]:
    """Return warnings about the labels of an evaluation, a line each."""
    over_other = base_of(desk.set.corpus) != base_of(corpus)
    split = sum(one.how == "median" for one in finals.values())
    return sentences("labels.tied", desk.set, tied, corpus, over_other, split, short)


def _targets(judged: Passage, found: tuple[Document, list[Passage]] | None) -> tuple[tuple[str, ...], bool]:
    """Ids of the passages that take over a label, and whether by the words (else by the place)."""
    if found is None or not found[1]:
        return (), False
    document, passages = found
    if judged.text.strip():
        try:
            entry = Evidence(judged.doc_id, 0, judged.text, "label")
            return tuple(holding(entry, document.text, passages)), True
        except BadInput:
            pass  # the words have changed: by the place
    length = judged.end - judged.start
    shared = {p.id: min(judged.end, p.end) - max(judged.start, p.start) for p in passages}
    most = max(shared, key=lambda id: (shared[id], id))
    if shared[most] <= 0:
        return (), False
    return tuple(id for id, held in shared.items() if held >= HALF * length) or (most,), False


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


def _now(pair: Pair, tied: Tied, corpus: Corpus | None) -> str:
    if pair in tied.carried:
        by = "its place" if pair in tied.moved else "its words"
        found = corpus.by_ids(tied.carried[pair]) if corpus is not None else {}
        names = [name_of(corpus, found[id]) if corpus and id in found else id for id in tied.carried[pair]]
        return f"carried over by {by} to {', '.join(names)}"
    if pair in tied.lost:
        return "lost: the corpus has no such text"
    return "its words have changed since" if pair in tied.changed else ""


LEVELS = tuple(sorted(GRADES))
BANDS = ((0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"))


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two annotators on the `n` passages that both graded. `observed`: the share with the
    same grade. The kappas are None if they are undefined, and `why` has the reason; "linear" and "quadratic"
    weigh a difference of grades by its size and its square. `ci95` is the `interval` of the plain kappa.
    `confusion[i][j]`: passages that `first` graded i and `second` graded j.
    """

    first: str
    second: str
    n: int
    observed: float | None
    kappa: float | None
    linear: float | None
    quadratic: float | None
    confusion: tuple[tuple[int, ...], ...]
    why: str = ""
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A passage with different grades: (annotator, grade) in the annotators' order; `distance` between the
    extremes. `adjudication` is the judgement that settles it, or None.
    """

    question: str
    passage: str
    grades: tuple[tuple[str, int], ...]
    distance: int
    adjudication: Judgement | None = None


def between(desk: Desk) -> tuple[Agreement, ...]:
    """Compare every pair of people and imports, in their order."""
    graded = {who: desk.grades(who) for who in desk.annotators()}
    return tuple(agree(a, graded[a], b, graded[b]) for a, b in combinations(graded, 2))


def suggestions(desk: Desk) -> tuple[Agreement, ...]:
    """Compare every model with the final grades ("final grade"), then with each annotator."""
    counted = {pair: one.grade for pair, one in final(desk).items() if one.grade is not None}
    people = {who: desk.grades(who) for who in desk.annotators()}
    against: dict[str, Mapping[Pair, int]] = {"final grade": counted, **people}
    return tuple(
        agree(model, desk.grades(model), name, grades)
        for model in desk.models()
        for name, grades in against.items()
    )


def agree(first: str, grades: Mapping[Pair, int], second: str, others: Mapping[Pair, int]) -> Agreement:
    """Two annotators' grades compared where both gave one.

    Cohen 1960, "A coefficient of agreement for nominal scales"; weighted: Cohen 1968, "Weighted kappa".
    """
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    both = [pair for pair in grades if pair in others]
    mine, theirs = [grades[pair] for pair in both], [others[pair] for pair in both]
    if not both:
        none = tuple((0,) * len(LEVELS) for _ in LEVELS)
        return Agreement(first, second, 0, None, None, None, None, none, "no passage was graded by both")
    counts = confusion_matrix(mine, theirs, labels=LEVELS)
    confusion = tuple(tuple(int(count) for count in row) for row in counts)
    observed = sum(a == b for a, b in zip(mine, theirs, strict=True)) / len(both)
    if len({*mine, *theirs}) == 1:
        why = f"both gave grade {mine[0]} alone, so that chance would agree as well"
        return Agreement(first, second, len(both), observed, None, None, None, confusion, why)
    plain, linear, quadratic = (
        float(cohen_kappa_score(mine, theirs, labels=LEVELS, weights=weights))
        for weights in (None, "linear", "quadratic")
    )
    told = interval(tuple((pair[0], grades[pair], others[pair]) for pair in both))
    return Agreement(first, second, len(both), observed, plain, linear, quadratic, confusion, ci95=told)


@lru_cache(maxsize=64)
def interval(both: tuple[tuple[str, int, int], ...]) -> tuple[float, float] | None:
    """95% bootstrap interval of Cohen's kappa over (question, grade, other grade), see `kappa`."""
    from core.evaluation.statistics import kappa

    return kappa(both, LEVELS).ci95


def disagreements(desk: Desk) -> tuple[Disagreement, ...]:
    """Return the passages that people or imports graded differently: furthest apart first, settled ones
    last.
    """
    settled, graded = desk.adjudicated(), {who: desk.grades(who) for who in desk.annotators()}
    found = []
    for pair in desk.pairs:
        grades = {who: by[pair] for who, by in graded.items() if pair in by}
        if apart := max(grades.values(), default=0) - min(grades.values(), default=0):
            found.append(Disagreement(*pair, tuple(grades.items()), apart, settled.get(pair)))
    return tuple(sorted(found, key=lambda one: (one.adjudication is not None, -one.distance)))


def landis_koch(kappa: float) -> str:
    """Return the band of a kappa: poor below 0, slight to 0.20, fair to 0.40, moderate to 0.60, substantial
    to 0.80, almost perfect above. The authors call the bounds arbitrary.

    Landis & Koch 1977, "The measurement of observer agreement for categorical data", table on p. 165.
    """
    return "poor" if kappa < 0 else next((name for bound, name in BANDS if kappa <= bound), "almost perfect")
