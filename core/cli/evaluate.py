"""`eval`: many labelled questions by many routes, with honest statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from core.cli.ask import answer_options, read_parameters
from core.cli.common import (
    ProgressBar,
    columns_option,
    emit,
    filter_option,
    model_options,
    note,
    output_options,
    parameter_options,
    pipeline_options,
    preset_option,
    stoppable,
    with_own,
    worker_options,
)
from core.cli.figures import figures_text
from core.cli.named import chosen_by, preset_of, with_preset
from core.domain.errors import BadInput
from core.evaluation.spec import Spec

if TYPE_CHECKING:
    from core.backends.workers.place import WorkPlace
    from core.domain.pipelines import Pipeline
    from core.domain.types import AnswerBy, AnswerOrder
    from core.engine.engine import Engine
    from core.evaluation.dataset import Found
    from core.evaluation.runner import Course
    from core.routes.declare import Route

MAX_FAILED = 0.05  # share of the questions at which a route may fail
_FILE = click.Path(path_type=Path)


@click.command("eval")
@click.argument("target", metavar="PATH_OR_NAME")
@click.option(
    "--routes",
    metavar="A,B",
    help="Names from `routes`, or all. Default: those that can run without a language model.",
)
@click.option(
    "--embedders",
    metavar="A,B",
    help="Measure each route with each of these embedders, and compare them pair by pair. Limits on cosines "
    "are moved for every embedder but the first.",
)
@pipeline_options
@click.option(
    "--run",
    "run_files",
    multiple=True,
    metavar="NAME=FILE",
    help="Replies of a pipeline from a file as a route, .run (TREC) or .jsonl (a reply a line); repeatable.",
)
@click.option("--name", help="Name for the corpus of a folder that is not indexed yet.")
@model_options(Spec, "asked")
@columns_option
@preset_option("A preset; --parameter overrides it.")
@parameter_options
@filter_option
@click.option(
    "--answers",
    type=click.Choice(["none", "all"]),
    default="none",
    show_default=True,
    help="Have the routes write answers, and measure them.",
)
@answer_options
@click.option(
    "--out",
    type=_FILE,
    metavar="DIR",
    help="Write metrics, run files and a report here; resumes an evaluation that was stopped.",
)
@click.option("--keep", metavar="NAME", help="Like --out, but save under a name for the Evaluate page.")
@click.option(
    "--judge",
    is_flag=True,
    help="Also grade passages by the language model: means over all questions, corrected by people's labels, "
    "and each metric as a range.",
)
@click.option(
    "--chunkings",
    metavar="A,B",
    help="Also measure the source chunked or read in these ways (256, 512/64, headings, sentences, whole, "
    "pdf=kreuzberg, html=all), or all that are indexed, by how much of the labelled text each covers. Saved "
    "for the Evaluate page.",
)
@click.option(
    "--max-failed",
    type=click.FloatRange(0, 1),
    default=MAX_FAILED,
    show_default=True,
    metavar="SHARE",
    help="Exit with 1 if a route failed on more than this share of the questions.",
)
@click.option("--fresh", is_flag=True, help="Discard the results in --out and start over.")
@click.option("--retry-failed", is_flag=True, help="Rerun the questions that failed in --out.")
@worker_options
@output_options
def eval_(
    target: str,
    name: str | None,
    routes: str | None,
    embedders: str | None,
    own: Sequence[str],
    run_files: Sequence[str],
    asked: dict[str, Any],
    columns: Mapping[str, str],
    preset: str | None,
    parameters: Sequence[str],
    filters: Sequence[str],
    answers: Literal["none", "all"],
    answer_by: AnswerBy | None,
    answer_order: AnswerOrder | None,
    out: Path | None,
    keep: str | None,
    judge: bool,
    chunkings: str | None,
    fresh: bool,
    retry_failed: bool,
    max_failed: float,
    workers: WorkPlace | None,
    as_json: bool,
) -> int:
    """Measure routes on labelled questions: a BEIR folder, or the name of a corpus with questions.

    Questions that failed or have no relevant passage are excluded from the means and counted separately. A
    passage is relevant from grade 1, and from grade 2 in the built-in sets (support, pydocs), graded
    0-3. nDCG uses the grades.

    With --answers all, answers are compared with gold answers, citations with relevant passages, and
    abstentions with the questions that the documents do not answer. No model judges them.

    With --judge, each route has a `corrected` mean over labelled and unlabelled questions. Its interval holds
    however wrong the model is, if the labelled questions are a random part. If `labels judge` has shown that
    the model agrees with people, metrics are also given twice: with every unjudged passage as not relevant,
    and as the model grades it.
    """
    from core.cli import chunkings as several
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.corpus.variants import key_of
    from core.domain import settings
    from core.domain.filters import read_filters
    from core.domain.pipelines import from_file
    from core.engine.engine import shared_engine
    from core.evaluation import dataset, embedder_change, sets
    from core.evaluation.experiment import perform, prepare
    from core.evaluation.experiment_store import place
    from core.evaluation.judge import filling
    from core.evaluation.summary import check_baseline
    from core.evaluation.text import failing, failing_said
    from core.routes.registry import add, pick

    now = settings.current()
    if keep is not None:
        if out is not None:
            raise BadInput("--keep NAME and --out DIR cannot be combined; give one")
        out = place(now, keep)
    if out is None and (fresh or retry_failed):
        raise BadInput("--fresh and --retry-failed need --out DIR or --keep NAME")
    if answers == "none" and (answer_by or answer_order):
        raise BadInput("--answer-by and --answer-order need --answers all")
    labels = own_labels(asked)
    source = catalogue.source(target, settings=now, name=name)
    others = several.sources(source, chunkings, now, run_files) if chunkings is not None else []
    engine = shared_engine()
    files = [from_file(one) for one in run_files]
    for pipeline in files:
        add(pipeline)
    own = (*own, *(pipeline.name for pipeline in files))
    named = preset_of(engine, preset) if preset is not None else None
    chosen = chosen_by(named, pick(routes) if routes else [])
    if embedders is not None:
        if not chosen:
            raise BadInput("--embedders needs --routes A,B")
        chosen = pick(embedder_change.variants(chosen, embedders.split(",")))
    if chosen:
        chosen = with_own(chosen, own)
        check_baseline(asked["baseline"], [route.name for route in chosen])
    applied = with_preset(named, chosen, read_parameters(parameters, chosen))
    found = None
    if labels is None:  # before an index is built: an invalid file is reported immediately
        found = sets.read(
            source.name,
            source.path,
            split=asked["split"],
            questions=list(map(Path, asked["questions"])),
            qrels=Path(asked["qrels"]) if asked["qrels"] else None,
            columns=columns,
        )
        if asked["mode"]:
            dataset.of_mode(found, asked["mode"])
    if files:
        _read_files(engine, files, found, labels)
    spec = Spec(
        source.name,
        applied.routes,
        applied.parameters,
        answers=answers == "all",
        answer_by=answer_by,
        answer_order=answer_order,
        evidence=applied.evidence,
        runs=tuple(f"{one.name}={Path(one.target).name}" for one in files),
        chunkings=tuple(str(key_of(one.name)) for one in others),
        filters=tuple(map(str, read_filters(filters))),
        columns=columns,
        **asked,
    )
    if judge and others:
        raise BadInput("--judge and --chunkings cannot be combined; give one")
    judging = filling.plan(engine, spec, source.path) if judge else None
    course: Course = {"fresh": fresh, "retry": retry_failed, "workers": workers}
    if others:
        for other in others:
            ensure(other, now)
        folder = out or several.free_place(now, source.name)
        return several.measure(
            engine,
            spec,
            found,
            source,
            folder,
            max_failed=max_failed,
            as_json=as_json,
            **course,
        )
    ensure(source, now)
    if embedders is not None:
        spec = _retuned(engine, spec, chosen, found)
    ready = prepare(engine, spec, found, source.path)
    for warning in ready.warnings:  # before hours are spent
        note(f"warning: {warning}")
    bar = ProgressBar("q")
    with stoppable() as stop:
        course["ended"], course["progress"] = stop.is_set, partial(bar, "questions")
        figures, drawn, outcomes = perform(engine, ready, out=out, **course)
        if judging is not None and not figures["interrupted"]:
            figures = filling.added(
                engine,
                figures,
                drawn,
                outcomes,
                judging,
                out=out,
                cancel=stop,
                progress=lambda done, total: bar("judging unjudged passages", done, total),
            )
    bar.close()
    for line in figures["reading"]:
        note(line)
    for warning in figures["warnings"]:
        if warning not in ready.warnings:
            note(f"warning: {warning}")
    said = failing_said(figures, max_failed)
    if said and as_json:
        note(said)
    emit(figures, lambda: "\n".join(filter(None, [said, _text(figures, out)])), as_json=as_json)
    if figures["interrupted"]:
        note(
            "stopped by the user"
            + (f"; results so far are in {out}, and the same command resumes from them" if out else "")
        )
    return 1 if figures["interrupted"] or failing(figures, max_failed) else 0


def _text(figures: Mapping[str, Any], out: Path | None) -> str:
    """Format the tables and the effects of changing the embedder."""
    from core.evaluation import embedder_change

    lines = embedder_change.in_words(figures.get("embedders", ()), "ndcg@10")
    return "\n\n".join([figures_text(figures, out), *(["\n".join(lines)] if lines else [])])


def _retuned(engine: Engine, spec: Spec, chosen: Sequence[Route], found: Found | None) -> Spec:
    """Return the spec with cosine limits adjusted for each embedder; the adjustments go to stderr."""
    from core.evaluation import embedder_change

    asked = [question.query for question in found.questions] if found is not None else []
    merged = {route: dict(values) for route, values in spec.parameters.items()}
    for one in embedder_change.moved(engine, spec.corpus, chosen, asked):
        if one.parameter in merged.get(one.route, {}):
            continue  # given on the command line, or by a preset
        merged.setdefault(one.route, {})[one.parameter] = one.after
        note(f"{one.route}.{one.parameter}: {one.before:g} becomes {one.after:g}, {one.how}")
    return replace(spec, parameters=merged)


def own_labels(asked: Mapping[str, Any]) -> str | None:
    """Return the label set that options name. Raises BadInput if they name files of questions, too."""
    if asked["labels"] is not None and (asked["questions"] or asked["qrels"]):
        raise BadInput("--labels cannot be combined with --questions or --qrels")
    found: str | None = asked["labels"]
    return found


def _read_files(engine: Engine, files: Sequence[Pipeline], found: Found | None, labels: str | None) -> None:
    """Read the files of --run for the questions of the set."""
    from core.backends.external.run_files import read, use
    from core.evaluation.labels import desk

    if found is not None:
        of, questions = found.name, found.questions
    else:
        if engine.store is None or labels is None:
            raise BadInput("--labels needs stored runs, and they are off")
        of, questions = labels, desk.load(engine.store, labels).questions
    queries = {question.id: question.query for question in questions}
    for pipeline in files:
        use(pipeline.name, read(Path(pipeline.target), queries, of))
