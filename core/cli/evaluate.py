"""`eval`: many labelled questions by many routes, with honest statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack

from core.api.evaluating import chunkings_of
from core.backends.external.run_files import read, use
from core.backends.workers.place import WorkPlace
from core.cli import corpora
from core.cli.commands import COLUMNS, ROUTES, WORKERS, argument, command, declared, json_asked
from core.cli.common import amount, emit, note, table, warn, working
from core.cli.figures import figures_text
from core.cli.named import RunOptions, chosen, merged, preset_of, with_own
from core.corpus import catalogue
from core.corpus.source import Source, key_of
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.format import between, number, size
from core.domain.pipelines import Pipeline, from_file
from core.engine import engine as engines
from core.evaluation import embedder_change, experiment_store, sets
from core.evaluation.background import free_name
from core.evaluation.chunkings import measuring
from core.evaluation.chunkings.report import WHOLE, failures, findings, flat
from core.evaluation.dataset import Found
from core.evaluation.experiment import perform, prepare
from core.evaluation.experiment_store import names, place
from core.evaluation.judge import filling
from core.evaluation.labels import desk
from core.evaluation.runner import Course
from core.evaluation.spec import Spec, option
from core.evaluation.summary import check_baseline
from core.evaluation.templating import say
from core.evaluation.text import failing, failing_said
from core.routes.declare import Route
from core.routes.registry import add, pick

MAX_FAILED = 0.05  # share of the questions at which a route may fail


@command("eval")
def eval_(
    target: str = argument("PATH_OR_NAME"),
    routes: str | None = ROUTES,
    embedders: str | None = option(
        None, "Measure each route with each of these embedders, and compare them pair by pair.", "A,B"
    ),
    how: RunOptions = declared(RunOptions, RunOptions),
    run_files: Sequence[str] = option(
        (),
        "Replies of a pipeline from a file as a route, .run (TREC) or .jsonl (a reply a line); repeatable.",
        "NAME=FILE",
        flags="--run",
    ),
    name: str | None = option(None, "Name for the corpus of a folder that is not indexed yet."),
    asked: dict[str, Any] = declared(Spec),
    columns: Mapping[str, str] = COLUMNS,
    answers: Literal["none", "all"] = option("none", "Have the routes write answers, and measure them."),
    out: Path | None = option(None, "Write the results here; resumes a stopped evaluation.", "DIR"),
    keep: str | None = option(None, "Like --out, but save under a name for the Evaluate page.", "NAME"),
    judge: bool = option(False, "Also grade passages by the language model, corrected by people's labels."),
    chunkings: str | None = option(
        None,
        "Also measure the source chunked or read in these ways (256, 512/64, headings, sentences, whole, "
        "pdf=kreuzberg, html=all), or all that are indexed, by how much of the labelled text each covers.",
        "A,B",
    ),
    max_failed: float = option(
        MAX_FAILED, "Exit with 1 if a route failed on more of the questions.", "SHARE", most=1
    ),
    fresh: bool = option(False, "Discard the results in --out and start over."),
    retry_failed: bool = option(False, "Rerun the questions that failed in --out."),
    workers: WorkPlace | None = WORKERS,
) -> int:
    """Measure routes on labelled questions: a BEIR folder, or the name of a corpus with questions.

    Questions that failed or have no relevant passage are excluded from the means and counted separately. A
    passage is relevant from grade 1, and from grade 2 in the built-in sets (support, pydocs), graded
    0-3. nDCG uses the grades.

    With --answers all, answers are compared with gold answers, citations with relevant passages, and
    abstentions with the questions that the documents do not answer. No model judges them.

    With --nuggets, vital_recall is the share of a question's vital nuggets that an answer supports, and
    nugget_score that of all, partial support as half (`labels nuggets`). People's own assignments count; the
    model's only if they agree with people's.

    With --judge, each route has a `corrected` mean over labelled and unlabelled questions. Its interval holds
    however wrong the model is, if the labelled questions are a random part. If `labels judge` has shown that
    the model agrees with people, metrics are also given twice: with every unjudged passage as not relevant,
    and as the model grades it.
    """
    own = how.use_pipelines()
    now = settings.current()
    if keep is not None:
        if out is not None:
            raise BadInput("--keep NAME and --out DIR cannot be combined; give one")
        out = experiment_store.place(now, keep)
    if out is None and (fresh or retry_failed):
        raise BadInput("--fresh and --retry-failed need --out DIR or --keep NAME")
    if answers == "none" and (how.answer_by or how.answer_order):
        raise BadInput("--answer-by and --answer-order need --answers all")
    check_labels(asked)
    source = catalogue.source(target, settings=now, name=name)
    if chunkings is not None and (judge or run_files):
        raise BadInput(f"{'--judge' if judge else '--run'} cannot be combined with --chunkings")
    others = () if chunkings is None else chunkings_of(source, chunkings, now)
    engine = engines.shared_engine()
    files = [from_file(one) for one in run_files]
    for pipeline in files:
        add(pipeline)
    own = (*own, *(pipeline.name for pipeline in files))
    kept = preset_of(engine, how.preset)
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
        merged(kept, picked, how.parameters),
        answers=answers == "all",
        answer_by=how.answer_by,
        answer_order=how.answer_order,
        evidence=kept.evidence,
        runs=tuple(f"{one.name}={Path(one.target).name}" for one in files),
        chunkings=tuple(str(key_of(one.name)) for one in others),
        filters=tuple(map(str, how.filters)),
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
        corpora.ensure(one, now)
    if others:
        folder = out or place(now, free_name(f"{source.name}-chunkings", names(now)))
        return measure(engine, spec, found, source, folder, max_failed=max_failed, **course)
    if embedders is not None:
        spec = _retuned(engine, spec, picked, found)
    ready = prepare(engine, spec, found)
    warn(ready.warnings)  # before hours are spent
    with working("q") as (bar, stop):
        course["ended"], course["progress"] = stop.is_set, partial(bar, "questions")
        figures, drawn, outcomes = perform(engine, ready, out=out, **course)
        if judging is not None and not figures["interrupted"]:
            report = partial(bar, "judging unjudged passages")
            figures = filling.added(
                engine, figures, drawn, outcomes, judging, out=out, cancel=stop, progress=report
            )
    for line in figures["reading"]:
        note(line)
    warn(warning for warning in figures["warnings"] if warning not in ready.warnings)
    changes = "\n".join(embedder_change.in_words(figures.get("embedders", ()), "ndcg@10"))
    text = "\n\n".join(filter(None, [figures_text(figures, out), changes]))
    return _reported(figures, text, figures, max_failed, out)


def _reported(
    document: Mapping[str, Any], text: str, figures: Mapping[str, Any], most: float, out: Path | None
) -> int:
    """Print the result; the exit code, 1 if a route of `figures` failed on a larger share than `most`."""
    said = failing_said(figures, most)
    if said and json_asked():
        note(said)
    emit(document, f"{said}\n{text}" if said else text)
    if document["interrupted"]:
        kept = f"; results so far are in {out}, and the same command resumes from them" if out else ""
        note(f"stopped by the user{kept}")
    return 1 if document["interrupted"] or failing(figures, most) else 0


def _retuned(engine: engines.Engine, spec: Spec, chosen: Sequence[Route], found: Found | None) -> Spec:
    """Return the spec with cosine limits adjusted for each embedder; the adjustments go to stderr."""
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


def _read_files(
    engine: engines.Engine, files: Sequence[Pipeline], found: Found | None, labels: str | None
) -> None:
    """Read the files of --run for the questions of the set."""
    if found is not None:
        of, questions = found.name, found.questions
    else:
        if engine.store is None or labels is None:
            raise BadInput("--labels needs stored runs, and they are off")
        of, questions = labels, desk.load(engine.store, labels).questions
    queries = {question.id: question.query for question in questions}
    for pipeline in files:
        use(pipeline.name, read(Path(pipeline.target), queries, of))


def measure(
    engine: engines.Engine,
    spec: Spec,
    found: Found | None,
    source: Source,
    out: Path,
    *,
    max_failed: float,
    **course: Unpack[Course],
) -> int:
    """Ask, save and print; the exit code."""
    group = measuring.prepare(engine, spec, found)
    known = group.parts[source.name].warnings
    warn(known)  # before hours are spent
    with working("q") as (bar, stop):
        course["ended"], course["progress"] = stop.is_set, partial(bar, "questions")
        figures = measuring.perform(engine, group, out=out, **course)
    warn(warning for warning in figures["warnings"] if warning not in known)
    document = {**figures, "saved": str(out)}
    code = _reported(document, in_words(figures, out), failures(figures), max_failed, out)
    return code if any(row["n"] for by in figures["routes"].values() for row in by.values()) else 1


def in_words(figures: Mapping[str, Any], out: Path) -> str:
    """Format the chunkings, and what each route found over each."""
    corpora = []
    for name, row in figures["chunkings"].items():
        tokens, seconds, reused = amount(row["tokens"], 1), amount(row["seconds"], 1), f"{row['reused']:.0%}"
        about = name, f"{row['passages']:,}", tokens, size(row["bytes"]), seconds
        corpora.append((*about, reused, row["label"]))
    heads = ("corpus", "passages", "tokens each", "on disk", "index s", "reused", "how it is cut")
    grid = table(heads, corpora)
    lines = []
    for row in flat(figures):
        ends = "" if row["low"] is None else between(row["low"], row["high"])
        against = number(row["delta"], signed=True) if row["delta"] is not None else ""
        means = (amount(row[one], 3) for one in ("area", "density", "documents", "passages"))
        named, p = (row["route"], row["chunking"]), amount(row["p"], 3)
        lines.append((*named, amount(row["coverage"], 3), ends, against, p, *means, row["questions"]))
    measured = ("route", "chunking", "coverage", "95%", f"less {figures['base']}", "p", "area")
    more = table((*measured, "labelled share", "documents found", "passages read", "n"), lines)
    return say("commands.chunkings", figures, WHOLE, findings(figures), grid, more, out)
