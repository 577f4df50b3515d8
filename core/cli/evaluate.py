"""`eval`: many labelled questions by many routes, with honest statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.cli.commands import (
    ANSWER_BY,
    ANSWER_ORDER,
    COLUMNS,
    ENV,
    FILTERS,
    OWN_ROUTES,
    PARAMETERS,
    PRESET,
    PYTHON,
    SCHEDULER,
    WORKERS,
    argument,
    command,
    declared,
    json_asked,
    use_pipelines,
)
from core.cli.common import emit, note, warn, working
from core.cli.figures import figures_text
from core.cli.named import chosen, merged, preset_of, with_own
from core.domain.errors import BadInput
from core.evaluation.spec import Spec, option

if TYPE_CHECKING:
    from core.domain.pipelines import Pipeline
    from core.engine.engine import Engine
    from core.evaluation.dataset import Found
    from core.evaluation.runner import Course
    from core.routes.declare import Route

MAX_FAILED = 0.05  # share of the questions at which a route may fail


@command("eval")
def eval_(
    target: str = argument("PATH_OR_NAME"),
    routes: str | None = option(
        None, "Names from `routes`, or all. Default: those that can run without a language model.", "A,B"
    ),
    embedders: str | None = option(
        None,
        "Measure each route with each of these embedders, and compare them pair by pair. Limits on cosines "
        "are moved for every embedder but the first.",
        "A,B",
    ),
    own_routes: Sequence[str] = OWN_ROUTES,
    python: str | None = PYTHON,
    env: Sequence[str] = ENV,
    run_files: Sequence[str] = option(
        (),
        "Replies of a pipeline from a file as a route, .run (TREC) or .jsonl (a reply a line); repeatable.",
        "NAME=FILE",
        flags="--run",
    ),
    name: str | None = option(None, "Name for the corpus of a folder that is not indexed yet."),
    asked: dict[str, Any] = declared(Spec),
    columns: Mapping[str, str] = COLUMNS,
    preset: str | None = PRESET,
    parameters: Sequence[str] = PARAMETERS,
    filters: Sequence[str] = FILTERS,
    answers: Literal["none", "all"] = option("none", "Have the routes write answers, and measure them."),
    answer_by: Literal["model", "extract"] | None = ANSWER_BY,
    answer_order: Literal["best first", "best at both ends"] | None = ANSWER_ORDER,
    out: Path | None = option(
        None, "Write metrics, run files and a report here; resumes an evaluation that was stopped.", "DIR"
    ),
    keep: str | None = option(None, "Like --out, but save under a name for the Evaluate page.", "NAME"),
    judge: bool = option(
        False,
        "Also grade passages by the language model: means over all questions, corrected by people's labels, "
        "and each metric as a range.",
    ),
    chunkings: str | None = option(
        None,
        "Also measure the source chunked or read in these ways (256, 512/64, headings, sentences, whole, "
        "pdf=kreuzberg, html=all), or all that are indexed, by how much of the labelled text each covers. "
        "Saved for the Evaluate page.",
        "A,B",
    ),
    max_failed: float = option(
        MAX_FAILED, "Exit with 1 if a route failed on more than this share of the questions.", "SHARE", most=1
    ),
    fresh: bool = option(False, "Discard the results in --out and start over."),
    retry_failed: bool = option(False, "Rerun the questions that failed in --out."),
    worker_count: int | None = WORKERS,
    scheduler: str | None = SCHEDULER,
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
    from core.backends.workers.place import place
    from core.cli import chunkings as several
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.corpus.variants import key_of
    from core.domain import settings
    from core.domain.filters import read_filters
    from core.domain.pipelines import from_file
    from core.engine.engine import shared_engine
    from core.evaluation import embedder_change, experiment_store, sets
    from core.evaluation.experiment import perform, prepare
    from core.evaluation.judge import filling
    from core.evaluation.summary import check_baseline
    from core.evaluation.text import failing, failing_said
    from core.routes.registry import add, pick

    own = use_pipelines(own_routes, python, env)
    workers = place(worker_count, scheduler)
    now = settings.current()
    if keep is not None:
        if out is not None:
            raise BadInput("--keep NAME and --out DIR cannot be combined; give one")
        out = experiment_store.place(now, keep)
    if out is None and (fresh or retry_failed):
        raise BadInput("--fresh and --retry-failed need --out DIR or --keep NAME")
    if answers == "none" and (answer_by or answer_order):
        raise BadInput("--answer-by and --answer-order need --answers all")
    check_labels(asked)
    source = catalogue.source(target, settings=now, name=name)
    others = several.sources(source, chunkings, now, run_files) if chunkings is not None else []
    if judge and others:
        raise BadInput("--judge and --chunkings cannot be combined; give one")
    engine = shared_engine()
    files = [from_file(one) for one in run_files]
    for pipeline in files:
        add(pipeline)
    own = (*own, *(pipeline.name for pipeline in files))
    kept = preset_of(engine, preset)
    picked = chosen(routes, kept)
    if embedders is not None:
        if not picked:
            raise BadInput("--embedders needs --routes A,B")
        picked = pick(embedder_change.variants(picked, embedders.split(",")))
    if picked:
        picked = with_own(picked, own)
        check_baseline(asked["baseline"], [route.name for route in picked])
    spec = Spec(
        source.name,
        tuple(route.name for route in picked),
        merged(kept, picked, parameters),
        answers=answers == "all",
        answer_by=answer_by,
        answer_order=answer_order,
        evidence=kept.evidence,
        runs=tuple(f"{one.name}={Path(one.target).name}" for one in files),
        chunkings=tuple(str(key_of(one.name)) for one in others),
        filters=tuple(map(str, read_filters(filters))),
        columns=columns,
        **asked,
    )
    # before an index is built: an invalid file is reported immediately
    found = sets.of_spec(spec, source.path) if spec.labels is None else None
    if files:
        _read_files(engine, files, found, spec.labels)
    judging = filling.plan(engine, spec, source.path) if judge else None
    course: Course = {"fresh": fresh, "retry": retry_failed, "workers": workers}
    for one in (*others, source):
        ensure(one, now)
    if others:
        folder = out or several.free_place(now, source.name)
        return several.measure(engine, spec, found, source, folder, max_failed=max_failed, **course)
    if embedders is not None:
        spec = _retuned(engine, spec, picked, found)
    ready = prepare(engine, spec, found, source.path)
    warn(ready.warnings)  # before hours are spent
    with working("q") as (bar, stop):
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
                progress=partial(bar, "judging unjudged passages"),
            )
    for line in figures["reading"]:
        note(line)
    warn(warning for warning in figures["warnings"] if warning not in ready.warnings)
    said = failing_said(figures, max_failed)
    if said and json_asked():
        note(said)
    changes = "\n".join(embedder_change.in_words(figures.get("embedders", ()), "ndcg@10"))
    parts = [figures_text(figures, out), *([changes] if changes else [])]
    emit(figures, lambda: "\n".join([*([said] if said else []), "\n\n".join(parts)]))
    if figures["interrupted"]:
        note(
            "stopped by the user"
            + (f"; results so far are in {out}, and the same command resumes from them" if out else "")
        )
    return 1 if figures["interrupted"] or failing(figures, max_failed) else 0


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


def check_labels(asked: Mapping[str, Any]) -> None:
    """Raise BadInput if options name a label set and files of questions, too."""
    if asked["labels"] is not None and (asked["questions"] or asked["qrels"]):
        raise BadInput("--labels cannot be combined with --questions or --qrels")


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
