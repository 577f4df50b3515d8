"""`labels`: label sets, from their questions to the final grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from core.cli.common import columns_option, emit, note, output_options
from core.cli.following import ended, followed
from core.cli.label_files import export_, import_
from core.cli.label_judge import judge_
from core.cli.sessions import open_store
from core.cli.text import amount, table
from core.domain.errors import BadInput

if TYPE_CHECKING:
    from core.evaluation.dataset import Question
    from core.evaluation.labels.agreement import Agreement
    from core.evaluation.labels.desk import Desk


@click.group("labels")
def labels_() -> None:
    """Label sets: questions, the passages to judge, and the judgements.

    People judge passages on the Label page; `eval --labels NAME` measures routes on a set.
    """


labels_.add_command(export_)
labels_.add_command(import_)
labels_.add_command(judge_)


@labels_.command("list")
@output_options
def list_(as_json: bool) -> int:
    """List the label sets and their progress."""
    from core.evaluation.labels import desk

    store = open_store()
    found = [_summary(desk.load(store, one.name)) for one in desk.sets(store)]
    head = ("set", "corpus", "questions", "passages", "graded", "regressions", "annotators")
    emit(
        {"sets": found},
        lambda: (
            table(
                head,
                [(*(row[key] for key in head[:-1]), ", ".join(row["annotators"]) or "-") for row in found],
                right=(2, 3, 4, 5),
            )
            if found
            else "There are no label sets; create one with: labels create NAME --corpus CORPUS"
        ),
        as_json=as_json,
    )
    return 0


@labels_.command("create")
@click.argument("name")
@click.option("--corpus", required=True, metavar="CORPUS", help="Indexed corpus to search.")
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="As of `eval`; repeatable. Default: those of the corpus.",
)
@columns_option
@click.option(
    "--with-labels",
    is_flag=True,
    help="Also take over the labels of --questions, as judgements of `imported`.",
)
@click.option("--from-sessions", is_flag=True, help="Use the questions of stored sessions over the corpus.")
@click.option(
    "--relevant-from",
    type=click.IntRange(1, 3),
    default=2,
    show_default=True,
    metavar="GRADE",
    help="Lowest grade of a relevant passage.",
)
@output_options
def create_(
    name: str,
    corpus: str,
    questions: Sequence[Path],
    columns: Mapping[str, str],
    with_labels: bool,
    from_sessions: bool,
    relevant_from: Literal[1, 2, 3],
    as_json: bool,
) -> int:
    """Create a label set from questions; `labels pool` then finds the passages to judge."""
    from core.corpus import catalogue
    from core.domain import settings
    from core.engine.engine import shared_engine
    from core.evaluation import dataset
    from core.evaluation.labels import desk, exchange, origins

    if questions and from_sessions:
        raise BadInput("--questions and --from-sessions cannot be combined; give one")
    store = open_store()
    known = catalogue.source(corpus, settings=settings.current(), known_only=True).name
    if (columns or with_labels) and not questions:
        raise BadInput("--columns and --with-labels need --questions FILE")
    written = dataset.written(questions, name=known, columns=columns) if questions else None
    asked = written.questions if written else _questions(known, from_sessions=from_sessions)
    for line in origins.about(written) if written else ():
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
        as_json=as_json,
    )
    return 0


@labels_.command("pool")
@click.argument("name")
@click.option(
    "--routes",
    metavar="A,B",
    help="Names from `routes`. Default: those that can run without a language model.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    metavar="K",
    help="Passages per route and question.",
)
@click.option(
    "--evaluation",
    metavar="EVALUATION",
    help="Use the passages of a saved evaluation instead of running routes.",
)
@output_options
def pool_(name: str, routes: str | None, depth: int, evaluation: str | None, as_json: bool) -> int:
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
            as_json=as_json,
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
        as_json=as_json,
    )
    return ended(under_way)


@labels_.command("suggest")
@click.argument("name")
@output_options
def suggest_(name: str, as_json: bool) -> int:
    """Have the language model suggest grades, which are shown separately and never count as labels."""
    from core.engine.engine import shared_engine
    from core.evaluation.labels import suggest

    under_way = suggest.begin(shared_engine(), name)
    followed(under_way, "passages")
    if under_way.why:
        note(f"warning: {under_way.unscored} not scored, for example: {next(iter(under_way.why.values()))}")
    document = {
        "set": under_way.name,
        "annotator": under_way.annotator,
        "scored": under_way.scored,
        "not_scored": under_way.unscored,
        "interrupted": under_way.cancelled,
    }
    emit(
        document,
        lambda: (
            f"{under_way.scored} passages graded by {under_way.annotator}, {under_way.unscored} not scored"
        ),
        as_json=as_json,
    )
    return ended(under_way)


@labels_.command("agreement")
@click.argument("name")
@output_options
def agreement_(name: str, as_json: bool) -> int:
    """Show how far annotators agree beyond chance: Cohen's kappa per pair, models separately."""
    from core.evaluation.labels import agreement, desk

    opened = desk.load(open_store(), name)
    pairs, models = agreement.between(opened), agreement.suggestions(opened)
    apart = agreement.disagreements(opened)
    document = {
        "set": opened.set.name,
        "annotators": [asdict(one) for one in pairs],
        "models": [asdict(one) for one in models],
        "disagreements": len(apart),
        "adjudicated": sum(one.adjudication is not None for one in apart),
    }
    emit(document, lambda: _agreement_text(pairs, models, document), as_json=as_json)
    return 0


def _agreement_text(pairs: Sequence[Agreement], models: Sequence[Agreement], document: dict[str, Any]) -> str:
    head = ("first", "second", "both", "same", "kappa", "95%", "linear", "quadratic", "")
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
    if not rows:
        return "Agreement needs two annotators, or one annotator and a model's suggestions"
    counts = (
        f"{document['disagreements']} passages with different grades, {document['adjudicated']} adjudicated"
    )
    return f"{table(head, rows, right=(2, 3, 4, 6, 7))}\n{counts}"


def _summary(opened: Desk) -> dict[str, Any]:
    from core.evaluation.labels.final import final

    counted = final(opened).values()
    return {
        "set": opened.set.name,
        "corpus": opened.set.corpus,
        "questions": len(opened.questions),
        "passages": sum(map(len, opened.pool.values())),
        "graded": sum(one.grade is not None for one in counted),
        "annotators": list(opened.annotators()),
        "models": list(opened.models()),
        "regressions": sum(bool(question.complaints) for question in opened.questions),
        "relevant_from": opened.set.relevant_from,
        "created": opened.set.created,
    }


def _questions(corpus: str, *, from_sessions: bool) -> tuple[Question, ...]:
    from core.domain import settings
    from core.evaluation.labels import origins

    if not from_sessions:
        return origins.of_corpus(corpus, settings.current())
    if asked := origins.of_sessions(open_store(), corpus):
        return asked
    raise BadInput(f"no stored session asked corpus {corpus} a question; ask first, or give --questions FILE")
