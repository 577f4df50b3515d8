"""Questions with their kinds, features and the values of routes: what a router is trained and measured on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from core.backends.question_classifier import DEFAULT_ROUTE, NO_SEARCH, QuestionClass
from core.corpus import catalogue
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.evaluation import answers
from core.evaluation.dataset import Question
from core.evaluation.experiment_store import Evaluation
from core.evaluation.oracle import CLASS_OF
from core.steps import Steps
from core.steps.question_features import features

if TYPE_CHECKING:
    from core.engine.engine import Engine

HEADLINE = "ndcg@10"
LENT = 60  # questions of a set that are shown the databases of others, spread evenly over it
OF_TABLES = "text_to_sql"  # gives rows in place of passages, so that none of its hits has a label
KIND_OF_SET: Mapping[str, QuestionClass] = {  # public sets whose questions have no mode
    "anthropic-contextual": "plain",
    "clapnq-dev": "plain",
    "hotpotqa-100": "complex",
    "mtrag-human-subset": "plain",
    "scifact": "plain",
    "text2sql-geography": "structured",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A question of `set` of the class `kind` (None: its author gave none), with the value of each route that
    was measured on it.

    `features` by name; `shown` the same, had the corpus the database of another set, by that set.
    """

    set: str
    id: str
    text: str
    kind: QuestionClass | None
    features: Mapping[str, float]
    values: Mapping[str, float]
    shown: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def cases(
    engine: Engine,
    evaluations: Sequence[Evaluation],
    kinds: Mapping[str, QuestionClass],
    progress: Callable[[str, int, int], None] = lambda _set, _done, _of: None,
    *,
    test: bool = False,
) -> list[Case]:
    """The questions of `evaluations`, each a set by its folder's name; what a later one measured of a
    question of an earlier one's corpus is added to it. No model is asked.

    Some questions of a corpus without tables are also shown the databases of other sets: else any question
    that meets a database would be one to it. `kinds` goes before `KIND_OF_SET`. Questions of split test,
    which is for the final measurement, are there only with `test`; BadInput where a set has no others.
    """
    corpora = {
        one.name: catalogue.source(str(one.spec["corpus"]), settings=engine.settings).name
        for one in evaluations
    }
    databases = {one.name: corpora[one.name] for one in evaluations if _has_tables(engine, corpora[one.name])}
    found: dict[tuple[str, str], Case] = {}
    for one in evaluations:
        corpus = corpora[one.name]
        known = {**KIND_OF_SET, **kinds}.get(corpus)
        asked = one.questions if test else of_training(one)
        values = _values(engine, one, corpus, known)
        for number, (id, question) in enumerate(asked.items()):
            progress(one.name, number, len(asked))
            if (corpus, id) in found:
                earlier = found[corpus, id]
                found[corpus, id] = replace(earlier, values={**earlier.values, **values[id]})
                continue
            lent = number % max(1, len(asked) // LENT) == 0
            others = databases if lent and corpus not in databases.values() else {}
            found[corpus, id] = _case(engine, one.name, corpus, question, known, values[id], others)
    return _completed(list(found.values()))


def of_training(one: Evaluation) -> Mapping[str, Question]:
    """The questions outside split test; BadInput if there are none."""
    found = {id: question for id, question in one.questions.items() if question.split != "test"}
    if not found:
        raise BadInput(
            f"all {len(one.questions)} questions of {one.name} are of split test, which is kept for the "
            "final measurement; give --test to train on them all the same"
        )
    return found


def _completed(found: Sequence[Case]) -> list[Case]:
    """A search gives no rows and answers no greeting: 0 for each route of the set that was not run there."""
    routes: dict[str, dict[str, float]] = {}
    for case in found:
        routes.setdefault(case.set, {}).update(dict.fromkeys(case.values, 0.0))
    return [
        replace(case, values={**routes[case.set], **case.values})
        if case.values and case.kind in ("structured", "no_retrieval")
        else case
        for case in found
    ]


def kind_of(question: Question, known: QuestionClass | None) -> QuestionClass | None:
    """What a question is by its mode; without a mode conversational after a conversation, else `known`."""
    if question.mode is not None:
        return CLASS_OF.get(question.mode)
    return "conversational" if question.query.history else known


def _case(
    engine: Engine,
    name: str,
    corpus: str,
    question: Question,
    known: QuestionClass | None,
    values: Mapping[str, float],
    databases: Mapping[str, str],
) -> Case:
    text, before = question.query.text, bool(question.query.history)
    do = _steps(engine, corpus)
    searched = do.first_search(text, do.sparse(text), do.dense(text))
    words = do.context.corpus.analyzer.questions
    return Case(
        name,
        question.id,
        text,
        kind_of(question, known),
        features(text, before, searched, do.schema(text), words),
        values,
        {
            other: features(text, before, searched, _steps(engine, place).schema(text), words)
            for other, place in databases.items()
        },
    )


def _steps(engine: Engine, corpus: str) -> Steps:
    return engine.steps(engine.corpus(corpus))


def _has_tables(engine: Engine, corpus: str) -> bool:
    try:
        return bool(engine.tables(corpus, Need.TABLES).tables)
    except Unavailable:
        return False


def _values(
    engine: Engine, one: Evaluation, corpus: str, known: QuestionClass | None
) -> dict[str, dict[str, float]]:
    """By question and route: nDCG@10, or whether the rows are right (0 without a query), or whether a message
    that needs no search was left without one.
    """
    found: dict[str, dict[str, float]] = {id: {} for id in one.questions}
    tables = _has_tables(engine, corpus)
    rows: Mapping[str, Mapping[str, Mapping[str, float | None]]] = {}
    if tables and any(question.sql for question in one.questions.values()):
        database = engine.tables(corpus, Need.TABLES)
        rows = answers.measured(one.labelled, one.outcomes, one.routes, database).values
    for id, question in one.questions.items():
        kind = kind_of(question, known)
        executed = {route: by[id][answers.METRIC] for route, by in rows.items() if id in by}
        ranked = {route: by[id][HEADLINE] for route, by in one.values.items() if id in by}
        if kind == "no_retrieval":
            found[id] = {NO_SEARCH: 1.0, **dict.fromkeys(one.routes, 0.0), DEFAULT_ROUTE: 0.0}
        elif kind == "structured":
            right = {route: value for route, value in executed.items() if value is not None}
            found[id] = {**dict.fromkeys(one.routes, 0.0), DEFAULT_ROUTE: 0.0, **right} if right else {}
        elif ranked:
            found[id] = {NO_SEARCH: 0.0, **({OF_TABLES: 0.0} if tables else {}), **ranked}
    return found


def check(found: Sequence[Case]) -> None:
    """BadInput where there is nothing to hold out."""
    names = sorted({case.set for case in found})
    if len(names) < 2:
        raise BadInput(
            f"a router needs two sets or more, so that each can be held out; given: {', '.join(names)}"
        )
