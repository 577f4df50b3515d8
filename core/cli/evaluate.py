"""`eval`: many labelled questions by many routes, with honest statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from core.cli.ask import answer_options, answer_style, read_knobs
from core.cli.common import Bar, emit, note, output_options
from core.cli.figures import figures_text
from core.errors import BadInput

if TYPE_CHECKING:
    from core.engine import Engine
    from core.evaluate.dataset import LabelledSet
    from core.evaluate.execution import Executed
    from core.evaluate.journal import Journal
    from core.evaluate.runner import Outcomes, Plan
    from core.types import AnswerBy, AnswerOrder

SEED = 13  # of the sample that --queries draws
_FILE = click.Path(path_type=Path)


@click.command("eval")
@click.argument("target", metavar="PATH_OR_NAME")
@click.option(
    "--routes",
    metavar="A,B",
    help="Routes that `routes` lists, or all. Without it: those that can run and need no language model.",
)
@click.option("--name", help="What to call the corpus of a folder that is not indexed yet.")
@click.option("--baseline", metavar="ROUTE", help="Compare with this route; without it, with the first.")
@click.option("--split", default="test", show_default=True, metavar="SPLIT", help="dev, test or all.")
@click.option("--mode", help="Only questions of this kind.")
@click.option("--queries", type=click.IntRange(min=1), metavar="N", help="Only a sample of N questions.")
@click.option(
    "--per-mode",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only a sample of N labelled questions a mode.",
)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Which sample.")
@click.option(
    "--questions", type=_FILE, multiple=True, metavar="FILE", help="Questions as JSONL or CSV; repeatable."
)
@click.option(
    "--qrels", type=_FILE, metavar="FILE", help="TREC judgements of --questions, in place of their own."
)
@click.option("--knob", "knobs", multiple=True, metavar="ROUTE.NAME=VALUE", help="Set a knob; repeatable.")
@click.option("--timing", type=click.Choice(["shared", "isolated"]), help="Share equal steps, or not.")
@click.option("--answers", type=click.Choice(["none", "all"]), default="none", show_default=True,
              help="Whether the routes write answers, which are then measured.")  # fmt: skip
@answer_options
@click.option(
    "--out",
    type=_FILE,
    metavar="DIR",
    help="Write metrics, run files and a report; goes on where it stopped.",
)
@click.option("--fresh", is_flag=True, help="Forget what --out has.")
@click.option("--retry-failed", is_flag=True, help="Ask again what failed in --out.")
@output_options
def eval_(
    target: str,
    name: str | None,
    routes: str | None,
    baseline: str | None,
    split: str,
    mode: str | None,
    queries: int | None,
    per_mode: int | None,
    seed: int,
    questions: Sequence[Path],
    qrels: Path | None,
    knobs: Sequence[str],
    timing: Literal["shared", "isolated"] | None,
    answers: Literal["none", "all"],
    answer_by: AnswerBy | None,
    answer_order: AnswerOrder | None,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    as_json: bool,
) -> int:
    """Measure routes on labelled questions: a BEIR folder, or the name of a corpus with questions.

    A question that failed or has no relevant passage is counted beside the means, never as zero. A passage is
    relevant from grade 1; in sets with labels of their own (support, pydocs), graded 0-3, from grade 2. nDCG
    uses the grades.

    With --answers all the answers are compared with gold ones, their citations with relevant passages, and
    what was left unanswered with what the documents do not answer; no model judges them.
    """
    from core import settings
    from core.cli.corpora import ensure
    from core.corpus import catalogue
    from core.engine import Engine
    from core.evaluate import dataset, report, runner, sets, summary
    from core.needs import missing, why_not
    from core.route import pick
    from core.route import routes as known

    now = settings.current()
    source = catalogue.source(target, settings=now, name=name)
    engine = Engine(now)
    gaps = missing(engine, source.name)
    free = [route for route in known().values() if not route.asks() and not why_not(route, gaps)]
    chosen = pick(routes) if routes else free
    names = tuple(route.name for route in chosen)
    baseline = summary.check_baseline(baseline, names)
    if out is None and (fresh or retry_failed):
        raise BadInput("--fresh and --retry-failed need --out DIR, whose contents they are about")
    if answers == "none" and (answer_by or answer_order):
        raise BadInput("--answer-by and --answer-order are about the answers of --answers all")
    set_knobs = read_knobs(knobs, chosen)
    found = sets.read(source.name, source.path, split=split, questions=questions, qrels=qrels)
    found = dataset.of_mode(found, mode) if mode else found
    ensure(source, now)
    corpus = engine.corpus(source.name)
    labelled, said = sets.tie(found, corpus)
    warnings = dict.fromkeys([*corpus.warnings, *said])
    drawn = labelled.sample_modes(per_mode, seed) if per_mode else labelled
    drawn = drawn.sample(queries, seed) if queries else drawn
    style = answer_style(answer_by, answer_order, now) if answers == "all" else None
    plan = runner.Plan(corpus.name, names, set_knobs, timing or now.timing, style)
    bar = Bar("q")
    with _journal(out, _conditions(plan, engine), fresh=fresh, retry=retry_failed) as journal:
        outcomes, whole = runner.run(
            engine,
            drawn,
            plan,
            journal=journal,
            progress=lambda done, total: bar("questions", done, total),
            warn=lambda warning: warnings.update({warning: None}),
        )
    bar.close()
    executed = _executed(drawn, outcomes, names, engine, corpus.name)
    if remark := executed.remark():
        warnings[remark] = None
    figures = {
        **summary.summarise(drawn, outcomes, names, baseline=baseline, extra=executed.values),
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "split": split,
        "sample": {"of": len(labelled.questions), "seed": seed} if queries or per_mode else None,
        "timing": plan.timing,
        "answering": asdict(style) if style else None,
        "interrupted": not whole,
        "warnings": list(warnings),
    }
    for warning in warnings:
        note(f"warning: {warning}")
    if out is not None:
        report.write(out, figures, drawn, outcomes)
    emit(figures, lambda: figures_text(figures, out), as_json=as_json)
    if not whole:
        note(
            "stopped by the user; what is done is kept"
            + (f", and the same command goes on with it in {out}" if out else "")
        )
    return 0 if whole and any(row["statuses"]["ok"] for row in figures["routes"].values()) else 1


def _executed(
    labelled: LabelledSet, outcomes: Outcomes, names: Sequence[str], engine: Engine, corpus: str
) -> Executed:
    """How the routes' SQL does on the corpus' database; nothing without one, or without gold SQL."""
    from core.errors import Unavailable
    from core.evaluate.execution import Executed, measured
    from core.route import Need

    if not any(question.sql for question in labelled.questions):
        return Executed({})
    try:
        return measured(labelled, outcomes, names, engine.tables(corpus, Need.TABLES))
    except Unavailable:
        return Executed({})  # routes that need the database have said so


def _journal(
    out: Path | None, conditions: Mapping[str, Any], *, fresh: bool, retry: bool
) -> AbstractContextManager[Journal | None]:
    from core.evaluate.journal import Journal

    return nullcontext() if out is None else Journal.open(out, conditions, fresh=fresh, retry=retry)


def _conditions(plan: Plan, engine: Engine) -> dict[str, Any]:
    """What must be the same for outcomes to be put together."""
    return {
        "corpus": plan.corpus,
        "fingerprint": engine.corpus(plan.corpus).fingerprint,
        "routes": list(plan.routes),
        "knobs": plan.knobs,
        "timing": plan.timing,
        "answers": asdict(plan.style) if plan.style else None,
        "llm": engine.llm().model,
        "llm endpoint": engine.llm().endpoint,
    }
