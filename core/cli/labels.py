"""`labels`: label sets, from their questions to the final grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict
from pathlib import Path
from typing import Any

import click

from core.cli.commands import COLUMNS, command
from core.cli.common import attributes, emit, ended, followed, note
from core.cli.label_files import export_, import_
from core.cli.label_judge import judge_
from core.cli.sessions import open_store
from core.cli.text import amount, table
from core.domain.errors import BadInput
from core.evaluation.spec import option


@click.group("labels")
def labels_() -> None:
    """Label sets: questions, the passages to judge, and the judgements.

    People judge passages on the Label page; `eval --labels NAME` measures routes on a set.
    """


for one in (export_, import_, judge_):
    labels_.add_command(one)


@command("list", labels_)
def list_() -> None:
    """List the label sets and their progress."""
    from core.evaluation.labels import desk
    from core.evaluation.labels.final import final

    store = open_store()
    found: list[dict[str, Any]] = [
        {
            "set": one.set.name,
            "corpus": one.set.corpus,
            "questions": len(one.questions),
            "passages": sum(map(len, one.pool.values())),
            "graded": sum(judged.grade is not None for judged in final(one).values()),
            "annotators": list(one.annotators()),
            "models": list(one.models()),
            "regressions": sum(bool(question.complaints) for question in one.questions),
            "relevant_from": one.set.relevant_from,
            "created": one.set.created,
        }
        for one in (desk.load(store, listed.name) for listed in desk.sets(store))
    ]
    head = ("set", "corpus", "questions", "passages", "graded", "regressions", "annotators")
    rows = [(*(row[key] for key in head[:-1]), ", ".join(row["annotators"]) or "-") for row in found]
    none = "There are no label sets; create one with: labels create NAME --corpus CORPUS"
    emit({"sets": found}, lambda: table(head, rows, right=(2, 3, 4, 5)) if found else none)


@command("create", labels_)
def create_(
    name: str,
    corpus: str = option(MISSING, "Indexed corpus to search.", "CORPUS"),
    questions: Sequence[Path] = option((), "As of `eval`; repeatable. Default: those of the corpus.", "FILE"),
    columns: Mapping[str, str] = COLUMNS,
    with_labels: bool = option(
        False, "Also take over the labels of --questions, as judgements of `imported`."
    ),
    from_sessions: bool = option(False, "Use the questions of stored sessions over the corpus."),
    relevant_from: int = option(2, "Lowest grade of a relevant passage.", "GRADE", least=1, most=3),
) -> None:
    """Create a label set from questions; `labels pool` then finds the passages to judge."""
    from core.corpus import catalogue
    from core.domain import settings
    from core.engine.engine import shared_engine
    from core.evaluation import dataset
    from core.evaluation.labels import desk, exchange, pool

    if questions and from_sessions:
        raise BadInput("--questions and --from-sessions cannot be combined; give one")
    store = open_store()
    known = catalogue.source(corpus, settings=settings.current(), known_only=True).name
    if (columns or with_labels) and not questions:
        raise BadInput("--columns and --with-labels need --questions FILE")
    written = dataset.written(questions, name=known, columns=columns) if questions else None
    if written:
        asked = written.questions
    elif not from_sessions:
        asked = pool.of_corpus(known, settings.current())
    elif not (asked := pool.of_sessions(store, known)):
        raise BadInput(
            f"no stored session asked corpus {known} a question; ask first, or give --questions FILE"
        )
    for line in pool.about(written) if written else ():
        note(line)
    made = desk.create(store, name, known, asked, relevant_from=relevant_from)
    labelled = sum(bool(entries) for entries in written.evidence.values()) if written else 0
    if labelled and not with_labels:
        note(f"the labels of {labelled} questions are not taken over; --with-labels does that")
    if written and with_labels:
        added = exchange.import_questions(store, name, written, "imported", shared_engine().corpus(known))
        note("; ".join([f"{added.added} labels taken over", *added.left_out]))
    emit(
        {"set": made.name, "corpus": known, "questions": len(asked)},
        lambda: f"Created label set {made.name} with {len(asked)} questions; next: labels pool '{made.name}'",
    )


@command("pool", labels_)
def pool_(
    name: str,
    routes: str | None = option(
        None, "Names from `routes`. Default: those that can run without a language model.", "A,B"
    ),
    depth: int = option(10, "Passages per route and question.", "K", least=1, most=100),
    evaluation: str | None = option(
        None, "Use the passages of a saved evaluation instead of running routes.", "EVALUATION"
    ),
) -> int:
    """Find the passages to judge: the top passages of every route for each question. Existing ones stay."""
    from core.engine.engine import shared_engine
    from core.evaluation import experiment_store
    from core.evaluation.labels import desk, pool
    from core.routes.registry import pick

    engine, store = shared_engine(), open_store()
    names = tuple(route.name for route in pick(routes)) if routes else ()
    if evaluation is not None:
        opened = experiment_store.opened(experiment_store.place(engine.settings, evaluation))
        corpus = engine.corpus(desk.load(store, name).set.corpus)
        added = pool.from_evaluation(store, name, opened, corpus, names=names, depth=depth)
        if added.missing:
            note(f"warning: the text of {added.missing} passages no longer exists")
        emit(
            {"set": name, **asdict(added)},
            lambda: f"{added.new} new passages for {added.questions} questions",
        )
        return 0 if added.questions else 1
    under_way = pool.begin(engine, name, names, depth=depth)
    followed(under_way, "questions")
    for route, count in under_way.failed.items():
        note(f"warning: {route} failed on {count} questions: {under_way.why[route]}")
    document = {
        "set": under_way.name,
        "routes": list(under_way.routes),
        "new": under_way.new,
        "questions": under_way.finished,
        "failed": dict(under_way.failed),
        "interrupted": under_way.cancelled,
    }
    emit(
        document,
        lambda: (
            f"{under_way.new} new passages for {under_way.finished} of {under_way.total} questions, from "
            f"{len(under_way.routes)} routes"
        ),
    )
    return ended(under_way)


@command("suggest", labels_)
def suggest_(name: str) -> int:
    """Have the language model suggest grades, which are shown separately and never count as labels."""
    from core.engine.engine import shared_engine
    from core.evaluation.labels import suggest

    under_way = suggest.begin(shared_engine(), name)
    followed(under_way, "passages")
    if under_way.why:
        note(f"warning: {under_way.unscored} not scored, for example: {next(iter(under_way.why.values()))}")
    document = {
        "set": under_way.name,
        **attributes(under_way, "annotator scored"),
        "not_scored": under_way.unscored,
        "interrupted": under_way.cancelled,
    }
    emit(
        document,
        lambda: (
            f"{under_way.scored} passages graded by {under_way.annotator}, {under_way.unscored} not scored"
        ),
    )
    return ended(under_way)


@command("agreement", labels_)
def agreement_(name: str) -> None:
    """Show how far annotators agree beyond chance: Cohen's kappa per pair, models separately."""
    from core.evaluation.labels import desk, final

    opened = desk.load(open_store(), name)
    pairs, models = final.between(opened), final.suggestions(opened)
    apart = final.disagreements(opened)
    document = {
        "set": opened.set.name,
        "annotators": [asdict(one) for one in pairs],
        "models": [asdict(one) for one in models],
        "disagreements": len(apart),
        "adjudicated": sum(one.adjudication is not None for one in apart),
    }
    rows = [
        (
            a.first,
            a.second,
            a.n,
            amount(a.observed, 3),
            amount(a.kappa, 3),
            "" if a.ci95 is None else f"{a.ci95[0]:.3f} to {a.ci95[1]:.3f}",
            amount(a.linear, 3),
            amount(a.quadratic, 3),
            a.why,
        )
        for a in (*pairs, *models)
    ]
    head = ("first", "second", "both", "same", "kappa", "95%", "linear", "quadratic", "")
    counts = f"{len(apart)} passages with different grades, {document['adjudicated']} adjudicated"
    none = "Agreement needs two annotators, or one annotator and a model's suggestions"
    emit(document, lambda: f"{table(head, rows, right=(2, 3, 4, 6, 7))}\n{counts}" if rows else none)
