"""The label set in which a comparison of two routes is settled: the questions that decide most come first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.domain import people
from core.domain.errors import BadInput
from core.domain.types import Passage, Query
from core.evaluation.dataset import Question
from core.evaluation.labels import desk as desks
from core.evaluation.labels import label_next, rows
from core.evaluation.labels.label_next import Next
from core.evaluation.labels.origins import id_of
from core.evaluation.labels.pool import best
from core.evaluation.labels.types import Desk
from core.store.labels import GRADES, Judgement, LabelSet, LabelStore, Pooled, now

if TYPE_CHECKING:
    from core.evaluation.experiment_store import Evaluation
    from core.evaluation.labels_file import Documents
    from core.store import Store

ORDER = "~"  # between an evaluation and two routes, where an address names the order
NEWEST = 200  # stored runs that are looked through for questions
SESSIONS = 20  # of their questions at most join a set at a time
SUFFIX = "to settle"  # of the name of a set with an evaluation's questions


@dataclass(frozen=True, slots=True)
class Ready:
    """The set to label, and the ids of its questions in the order that decides most."""

    set: str
    questions: tuple[str, ...]


def begin(store: Store, evaluation: Evaluation, one: str, other: str, corpus: Documents) -> Ready:
    """Return the label set of an evaluation with the passages that decide between two routes in its pool. It
    is the set used by the evaluation. If its labels come from elsewhere, a set is created from its questions
    and judgements, which count as an import, and reused later. Questions of stored sessions in which both
    routes answered, and differ, join it. Raises BadInput if there is nothing to label, or the set of that
    name is over another corpus.
    """
    found = label_next.of_evaluation(evaluation, one, other)
    if not found:
        raise BadInput(
            f"no unjudged passage among the first {label_next.DEPTH} decides between {one} and {other}: "
            "labels cannot change their order here"
        )
    name = evaluation.spec.get("labels") or _own(store, evaluation, corpus)
    desk = desks.load(store, name)
    if desk.set.corpus != corpus.name:
        raise BadInput(f"label set {name} is over corpus {desk.set.corpus}, not {corpus.name}")
    ids = _same(desk)
    texts = _texts(evaluation, corpus, found)
    pool = {
        ids[item.query]: [
            Pooled(texts[id], _ranks(evaluation, item.id, id, (one, other)))
            for id in item.passages
            if id in texts
        ]
        for item in found
        if item.query in ids
    }
    asked = _of_sessions(store, desk, one, other)

    people.require("edit")

    def work(labels: LabelStore) -> None:
        for question, passages in asked.items():
            labels.keep_question(name, rows.document(question))
            pool[question.id] = passages
        labels.add_to_pool(name, pool)

    store.change_labels(work)
    return Ready(name, tuple(pool))


def _of_sessions(store: Store, desk: Desk, one: str, other: str) -> dict[Question, list[Pooled]]:
    """Questions of stored sessions over the corpus in which both routes answered and differ, and that the set
    does not have: those whose labels decide most, with the passages that do.
    """
    known = {question.query for question in desk.questions}
    found = store.sessions(corpus=desk.set.corpus, limit=NEWEST)
    runs = {
        row.id: store.load(row.id) for row in found if {one, other} <= {*row.routes} and row.status == "done"
    }
    fresh = [run for run in runs.values() if run.query not in known and id_of(run.query) not in desk.asked]
    asked = {}
    for item in label_next.of_runs(fresh, one, other)[:SESSIONS]:
        run = runs[item.id]
        wanted = {*item.passages}
        pooled = best([result for result in run.results if result.route in (one, other)], label_next.DEPTH)
        asked[Question(id_of(item.query), item.query)] = [p for p in pooled if p.passage.id in wanted]
    return asked


def order(desk: Desk, evaluation: Evaluation, one: str, other: str) -> tuple[str, ...]:
    """Return the questions of a set whose labels help to decide between two routes, most decisive first: as
    the evaluation ranked them, and by the set's own pool for questions not asked in it.
    """
    ids = _same(desk)
    found = [item for item in label_next.of_evaluation(evaluation, one, other) if item.query in ids]
    known = {ids[item.query] for item in found}
    found += [item for item in label_next.of_desk(desk, one, other) if item.id not in known]
    return tuple(dict.fromkeys(ids[item.query] for item in label_next.ordered(found)))


def _same(desk: Desk) -> dict[Query, str]:
    return {question.query: question.id for question in desk.questions}


def _own(store: Store, evaluation: Evaluation, corpus: Documents) -> str:
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

    people.require("edit")

    def work(labels: LabelStore) -> None:
        labels.create(fresh, rows.documents(asked))
        labels.add_to_pool(name, pool)
        labels.judge(name, said)

    store.change_labels(work)
    return name


def _texts(evaluation: Evaluation, corpus: Documents, found: Sequence[Next]) -> Mapping[str, Passage]:
    """Return the passages as the corpus has them; else as the evaluation's runs kept them."""
    texts = dict(corpus.by_ids(sorted({id for one in found for id in one.passages})))
    for one in found:
        if any(id not in texts for id in one.passages) and evaluation.run_id(one.id):
            texts = {**evaluation.run(one.id).passages, **texts}
    return texts


def _ranks(
    evaluation: Evaluation, question: str, passage: str, routes: Sequence[str]
) -> tuple[tuple[str, int], ...]:
    by = evaluation.outcomes[question]
    return tuple(
        (route, at)
        for route in routes
        for at, (id, _) in enumerate(by[route].hits[: label_next.DEPTH], 1)
        if id == passage
    )
