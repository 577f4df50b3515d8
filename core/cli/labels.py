"""`labels`: label sets, from their questions to the final grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict
from pathlib import Path
from typing import Any, Literal

import click

from core.cli import corpora
from core.cli.commands import COLUMNS, QUESTIONS, ROUTES, argument, command
from core.cli.common import amount, attributes, bytes_of, emit, ended, export, followed, note, table, warn
from core.cli.imports import open_store
from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import BadInput
from core.engine import engine as engines
from core.evaluation import dataset, experiment_store
from core.evaluation.judge import measure, source
from core.evaluation.judge import record as records
from core.evaluation.judge.record import JudgeRecord
from core.evaluation.labels import desk, draw, exchange, final, pool, preferences, suggest
from core.evaluation.spec import option
from core.evaluation.templating import say, sentences
from core.routes.registry import pick


@click.group("labels")
def labels_() -> None:
    """Label sets: questions, the passages to judge, and the judgements.

    People judge passages on the Label page; `eval --labels NAME` measures routes on a set.
    """


@command("list", labels_)
def list_() -> None:
    """List the label sets and their progress."""
    store = open_store()
    found: list[dict[str, Any]] = [
        {
            "set": one.set.name,
            **attributes(one.set, "corpus relevant_from created"),
            "questions": len(one.questions),
            "passages": sum(map(len, one.pool.values())),
            "graded": sum(judged.grade is not None for judged in final.final(one).values()),
            "annotators": list(one.annotators()),
            "models": list(one.models()),
            "regressions": sum(bool(question.complaints) for question in one.questions),
        }
        for one in (desk.load(store, listed.name) for listed in desk.sets(store))
    ]
    head = ("set", "corpus", "questions", "passages", "graded", "regressions", "annotators")
    rows = [(*(row[key] for key in head[:-1]), ", ".join(row["annotators"]) or "-") for row in found]
    none = "There are no label sets; create one with: labels create NAME --corpus CORPUS"
    emit({"sets": found}, table(head, rows) if found else none)


@command("create", labels_)
def create_(
    name: str,
    corpus: str = option(MISSING, "Indexed corpus to search.", "CORPUS"),
    questions: Sequence[Path] = QUESTIONS,
    columns: Mapping[str, str] = COLUMNS,
    with_labels: bool = option(False, "Also take over the labels of --questions, of `imported`."),
    from_sessions: bool = option(False, "Use the questions of stored sessions over the corpus."),
    relevant_from: int = option(2, "Lowest grade of a relevant passage.", "GRADE", least=1, most=3),
) -> None:
    """Create a label set from questions; `labels pool` then finds the passages to judge."""
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
        raise BadInput(f"no stored session asked corpus {known} a question; ask, or give --questions FILE")
    for line in pool.about(written) if written else ():
        note(line)
    made = desk.create(store, name, known, asked, relevant_from=relevant_from)
    labelled = sum(bool(entries) for entries in written.evidence.values()) if written else 0
    if labelled and not with_labels:
        note(f"the labels of {labelled} questions are not taken over; --with-labels does that")
    if written and with_labels:
        added = exchange.import_questions(
            store, name, written, "imported", engines.shared_engine().corpus(known)
        )
        note("; ".join([f"{added.added} labels taken over", *added.left_out]))
    told = f"Created label set {made.name} with {len(asked)} questions; next: labels pool '{made.name}'"
    emit({"set": made.name, "corpus": known, "questions": len(asked)}, told)


@command("pool", labels_)
def pool_(
    name: str,
    routes: str | None = ROUTES,
    depth: int = option(10, "Passages per route and question.", "K", least=1, most=100),
    evaluation: str | None = option(None, "Run no route; use the passages of a saved evaluation.", "NAME"),
) -> int:
    """Find the passages to judge: the top passages of every route for each question. Existing ones stay."""
    engine, store = engines.shared_engine(), open_store()
    names = tuple(route.name for route in pick(routes)) if routes else ()
    if evaluation is not None:
        opened = experiment_store.opened(experiment_store.place(engine.settings, evaluation))
        corpus = engine.corpus(desk.load(store, name).set.corpus)
        added = pool.from_evaluation(store, name, opened, corpus, names=names, depth=depth)
        if added.missing:
            note(f"warning: the text of {added.missing} passages no longer exists")
        emit({"set": name, **asdict(added)}, f"{added.new} new passages for {added.questions} questions")
        return 0 if added.questions else 1
    under_way = pool.begin(engine, name, names, depth=depth)
    followed(under_way, "questions")
    for route, count in under_way.failed.items():
        note(f"warning: {route} failed on {count} questions: {under_way.why[route]}")
    document = {
        "set": under_way.name,
        **attributes(under_way, "routes new failed"),
        "questions": under_way.finished,
        "interrupted": under_way.cancelled,
    }
    done = f"{under_way.finished} of {under_way.total} questions, from {len(under_way.routes)} routes"
    emit(document, f"{under_way.new} new passages for {done}")
    return ended(under_way)


@command("draw", labels_)
def draw_(
    name: str, routes: str | None = ROUTES, seed: int = option(1, "Another seed draws another order.")
) -> None:
    """Draw the order in which to label the questions of a pool, and store the chance of each with the set.

    Questions at which labels can move the routes' difference far come early more often. Label them in this
    order and stop anywhere: `eval --labels SET` counts each by its chance, so that the difference and the
    verdict are about all questions, with a narrower interval than the same number drawn evenly.
    """
    names = tuple(route.name for route in pick(routes)) if routes else ()
    order = draw.draw(open_store(), name, names, seed)
    emit({"set": name, "order": order}, f"Drew the order of {len(order)} questions; Label shows them in it")


@command("suggest", labels_)
def suggest_(name: str) -> int:
    """Have the language model suggest grades, which are shown separately and never count as labels."""
    under_way = _suggested(name, "grades")
    document = {
        "set": under_way.name,
        **attributes(under_way, "annotator scored"),
        "not_scored": under_way.unscored,
        "interrupted": under_way.cancelled,
    }
    by = f"{under_way.scored} passages graded by {under_way.annotator}"
    emit(document, f"{by}, {under_way.unscored} not scored")
    return ended(under_way)


def _suggested(name: str, what: suggest.What) -> suggest.Suggesting:
    """Have the model suggest until its end."""
    job = suggest.begin(engines.shared_engine(), name, what=what)
    followed(job, "suggested")
    if job.why:
        note(f"warning: {job.unscored} have no suggestion, for example: {next(iter(job.why.values()))}")
    return job


@command("nuggets", labels_)
def nuggets_(
    name: str,
    propose: bool = option(False, "Have the language model propose nuggets for questions that have none."),
) -> int:
    """List the nuggets of a set: the facts of a good answer, vital or okay to have.

    A person checks them on the page Label (keep, change, delete, add); only checked ones count in `eval
    --nuggets`. `labels export --format csv` and `labels import` take them to other sets.
    """
    code = ended(_suggested(name, "nuggets")) if propose else 0
    asked = desk.load(open_store(), name).questions
    found = [{"question": one.id, **asdict(nugget)} for one in asked for nugget in one.nuggets]
    columns = ("question", "vital", "checked", "text")
    rows = [[str(one[name]) for name in columns] for one in found]
    none = f"{name} has no nuggets; propose some with --propose, or write them on the page Label"
    emit({"set": name, "nuggets": found}, table(columns, rows) if rows else none)
    return code


@command("agreement", labels_)
def agreement_(name: str) -> None:
    """Show how far annotators agree beyond chance: Cohen's kappa per pair, models separately."""
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
    rows = []
    for a in (*pairs, *models):
        same, kappa, linear, quadratic = (amount(v, 3) for v in (a.observed, a.kappa, a.linear, a.quadratic))
        ends = "" if a.ci95 is None else f"{a.ci95[0]:.3f} to {a.ci95[1]:.3f}"
        rows.append((a.first, a.second, a.n, same, kappa, ends, linear, quadratic, a.why))
    head = ("first", "second", "both", "same", "kappa", "95%", "linear", "quadratic", "")
    counts = f"{len(apart)} passages with different grades, {document['adjudicated']} adjudicated"
    none = "Agreement needs two annotators, or one annotator and a model's suggestions"
    emit(document, f"{table(head, rows)}\n{counts}" if rows else none)


@command("pairs", labels_)
def pairs_(name: str) -> None:
    """Show which routes people prefer, compared side by side on the Label page.

    Bradley-Terry strengths (log odds against the average route) and the chance that one of two routes is
    preferred, a tie counting half, with 95% intervals.
    """
    found = preferences.preferences(desk.load(open_store(), name))
    rows = [one.row() for one in found.pairs]
    grid = [table(list(rows[0]), [list(row.values()) for row in rows]), ""] if rows else []
    said = sentences("labels.preferred", found, str, preferences.CLAIMS_FROM)
    emit({"set": name, **asdict(found)}, "\n".join([*grid, *said]))


LARGEST = 512 * 2**20  # bytes of a file that is read to be imported


@command("export", labels_)
def export_(
    name: str,
    kind: Literal["qrels", "csv", "hub"] = option(
        "qrels",
        "qrels: final grades in TREC format; csv: every judgement; hub: a dataset folder with the passages, "
        "as Hugging Face's datasets, MTEB and BEIR read it.",
        flags="--format",
    ),
    annotator: str | None = option(None, "With qrels: only the grades of this annotator.", "WHO"),
    unjudged: bool = option(False, "With csv: include unjudged passages."),
    out: Path | None = option(
        None, "Output file or folder; - is stdout. Default: named after the set.", "FILE"
    ),
) -> None:
    """Write the labels of a set to a file."""
    if annotator is not None and kind != "qrels":
        raise BadInput("--annotator needs --format qrels; a CSV file has every annotator")
    if unjudged and kind != "csv":
        raise BadInput("--unjudged needs --format csv; qrels have only graded passages")
    opened = desk.load(open_store(), name)
    safe = "".join(char if char.isalnum() or char in "._-" else "-" for char in opened.set.name)
    if kind == "hub":
        folder = out or Path(safe)
        count = exchange.hub(opened, engines.shared_engine().corpus(opened.set.corpus), folder)
        document = {"set": opened.set.name, "format": kind, "judgements": count, "path": str(folder)}
        emit(document, f"Wrote {folder}")
        return
    csv = kind == "csv"
    content = exchange.table(opened, unjudged=unjudged) if csv else exchange.qrels(opened, annotator)
    lines = None if csv else content.count(b"\n")
    document = {"set": opened.set.name, "format": kind, "judgements": lines}
    export(content, out, f"{safe}.{kind}", document, "Wrote")


@command("import", labels_)
def import_(
    name: str,
    file: Path,
    annotator: str | None = option(None, "Annotator of the judgements; required for TREC qrels.", "WHO"),
    columns: Mapping[str, str] = COLUMNS,
) -> None:
    """Add the judgements of a file to a set, all or none: CSV of `labels export`, TREC or BEIR qrels, or a
    file with questions and labels of another tool (Quepid ratings, ragas ...; see `eval --questions`).
    """
    store = open_store()
    content = bytes_of(file, LARGEST, "a file of labels")
    if file.suffix.lower() == ".csv" and not columns and exchange.is_own(content):
        added = exchange.import_table(store, name, content, str(file), annotator)
    elif annotator is None:
        raise BadInput(f"{file} does not name an annotator; give --annotator WHO")
    else:
        corpus = engines.shared_engine().corpus(desk.load(store, name).set.corpus)
        if columns or file.suffix.lower() in (".csv", ".json", ".jsonl", ".parquet", ".yaml", ".yml"):
            written = dataset.written([file], name=file.name, columns=columns)
            added = exchange.import_questions(store, name, written, annotator, corpus)
        else:
            added = exchange.import_qrels(store, name, content, str(file), annotator, corpus)
    told = f"Added {added.added} judgements and {added.passages} passages; {added.known} existed already"
    left_out = [f"Left out: {why}" for why in added.left_out]
    emit({"set": name, **asdict(added)}, "\n".join([told, *left_out]))


COUNT, SEED = 100, 1


@command("judge", labels_)
def judge_(
    target: str = argument("SET"),
    count: int = option(COUNT, "At most N passages; half of the questions are held out.", "N", least=20),
    seed: int = option(SEED, "Seed of the passages drawn.", least=None),
) -> int:
    """Measure how far the language model's judgement of relevance agrees with people's labels.

    SET is a label set, or a corpus with labels of its own, as `eval` takes it. The labelling guidelines stand
    in the prompt. One half of the questions chooses the bounds of the grades, the other is held out for
    Cohen's kappa with its interval. `eval --judge` uses the result. The model's replies are cached, so a
    stopped command goes on.
    """
    engine = engines.shared_engine()
    measure.check_model(engine)
    if target in source.label_sets(engine):
        labels = source.of_set(engine, target)
    else:
        try:
            origin = catalogue.source(target, settings=settings.current())
        except BadInput as error:
            known = ", ".join(source.label_sets(engine)) or "none"
            raise BadInput(f"{error}; label sets: {known}") from None
        corpora.ensure(origin, settings.current())
        labels = source.of_corpus(engine, origin.name, origin.path)
    warn(labels.warnings)
    under_way = measure.begin(engine, labels, count=count, seed=seed)
    followed(under_way, "passages")
    if under_way.unscored:
        note(f"warning: {under_way.unscored} passages got no score: {under_way.why}")
    record = under_way.record
    if record is not None:
        emit(record.document(), _text(record))
    elif under_way.cancelled:
        note("stopped by the user; the model's replies are saved, and the same command goes on")
    return ended(under_way)


def _text(record: JudgeRecord) -> str:

    grades = range(len(record.confusion))
    rows = [(f"people: {grade}", *record.confusion[grade]) for grade in grades]
    heads = ("", *(f"judge: {grade}" for grade in grades))
    said = (records.agreement(record), records.leaves_open(record), records.use(record))
    return "\n".join([say("commands.judge", record, table(heads, rows)), "", *said])
