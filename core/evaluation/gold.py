"""The grades that are known for the question of a run: those with its corpus, and those that people gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from core.corpus import catalogue
from core.corpus.variants import base_of
from core.domain.errors import BadInput, RouteScopeError
from core.domain.relevance import FULL
from core.domain.types import Run
from core.evaluation import sets
from core.evaluation.dataset import Found, Question, Written
from core.evaluation.labels import desk
from core.evaluation.labels.final import labelled_set
from core.evaluation.reading_losses import LossKind, fates, losses

if TYPE_CHECKING:
    from core.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Gold:
    """The labels of a question: grade (0-3) by passage id, {} if nothing is known. `mode` is the author's
    reason that the question is hard, None if there is no reason. `quotes` are the words, by document, that
    its author labelled as answering it.
    """

    grades: Mapping[str, int]
    mode: str | None = None
    quotes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    before: Mapping[str, tuple[LossKind, str]] = field(default_factory=dict)  # labels lost before the index


def gold(engine: Engine, run: Run, labels: str | None = None) -> Gold:
    """Return the labels of the run's question for its corpus as indexed now; people's grades take precedence
    over the corpus'. With `labels`, use only that label set: raises BadInput if it does not exist or does not
    have this question.
    """
    corpus = engine.corpus(run.corpus)
    asked = (run.query.text, run.query.history)
    if labels is not None:
        if engine.store is None:
            raise BadInput(f"labels are not stored here, so the set {labels!r} cannot be read")
        grades = labelled_set(engine.store, labels, corpus)[0].grades().get(asked)
        if grades is None:
            raise BadInput(f"label set {labels!r} has no grade for the question of run {run.id}")
        return Gold(grades)
    found = _with_corpus(engine, run)
    known = {**found.grades}
    for one in desk.sets(engine.store) if engine.store is not None else ():
        if base_of(one.corpus) == base_of(run.corpus):
            known |= _by_people(engine, run, one.name)
    return Gold(known, found.mode, found.quotes, found.before)


def _with_corpus(engine: Engine, run: Run) -> Gold:
    """By the questions that lie with the corpus, where there are some."""
    origin = catalogue.source(run.corpus, settings=engine.settings, known_only=True)
    try:
        found = sets.read(origin.name, origin.path, split="all")
    except BadInput:
        return Gold({})  # it comes without questions, or with some that an evaluation will complain of
    asked = (run.query.text, run.query.history)
    question = next((one for one in found.questions if (one.query.text, one.query.history) == asked), None)
    if question is None:
        return Gold({})
    try:
        corpus, one = engine.corpus(run.corpus), _only(found, question)
        tied, _ = sets.tie(one, corpus)
        before = fates(list(losses(one, corpus))) if isinstance(one, Written) else {}
    except RouteScopeError:
        return Gold({}, question.mode)  # the documents have changed since they were labelled
    quotes = quoted(found, question.id, FULL)
    return Gold(tied.qrels.get(question.id, {}), question.mode, quotes, before)


def quoted(found: Found, question: str, least: int = 0) -> dict[str, tuple[str, ...]]:
    """Return the words that the author of a question quoted, by document, of grade `least` or better."""
    quotes: dict[str, tuple[str, ...]] = {}
    for one in found.evidence.get(question, ()) if isinstance(found, Written) else ():
        if one.quote and one.grade >= least:
            quotes[one.doc] = (*quotes.get(one.doc, ()), one.quote)
    return quotes


def _only(found: Found, question: Question) -> Found:
    """One question alone: to place the quotes of all takes as long as it did for an evaluation."""
    if isinstance(found, Written):
        return replace(found, questions=(question,), evidence={question.id: found.evidence[question.id]})
    grades = {id: grades for id, grades in found.qrels.items() if id == question.id}
    return replace(found, questions=(question,), qrels=grades)


def _by_people(engine: Engine, run: Run, name: str) -> Mapping[str, int]:
    try:
        labelled = labelled_set(engine.store, name, engine.corpus(run.corpus))[0] if engine.store else None
    except RouteScopeError:
        return {}  # nothing of it is graded yet, or its words are gone
    return labelled.grades().get((run.query.text, run.query.history), {}) if labelled else {}
