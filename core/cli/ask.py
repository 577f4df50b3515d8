"""`ask`: one question by many routes, printed side by side and stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from core.cli import comparison
from core.cli.common import (
    ProgressBar,
    emit,
    filter_option,
    note,
    output_options,
    parameter_options,
    pipeline_options,
    preset_option,
    stoppable,
    with_own,
)
from core.cli.named import chosen_by, preset_of, with_preset
from core.domain.errors import BadInput

if TYPE_CHECKING:
    from core.domain.settings import Settings
    from core.domain.types import AnswerBy, AnswerOrder, AnswerStyle, Query, Run, Turn
    from core.engine.engine import Engine
    from core.engine.job import Job
    from core.routes.declare import Route

_SAID = re.compile(r"(user|assistant):\s*(.*)", re.IGNORECASE)
F = TypeVar("F", bound=Callable[..., Any])


def answer_options(function: F) -> F:
    """Add --answer-by and --answer-order, which `answer_style` reads."""
    by = click.option(
        "--answer-by",
        type=click.Choice(["model", "extract"]),
        help="Written by the language model, or sentences copied from passages.",
    )
    order = click.option(
        "--answer-order",
        type=click.Choice(["best first", "best at both ends"]),
        help="Order of the passages in the answer prompt.",
    )
    return by(order(function))


def answer_style(
    by: AnswerBy | None, order: AnswerOrder | None, now: Settings, evidence: float | None = None
) -> AnswerStyle:
    """Return the answer style given, else that of the settings."""
    from core.domain.types import AnswerStyle

    return AnswerStyle(
        by or now.answer_by, order or now.answer_order, now.answer_evidence if evidence is None else evidence
    )


@click.command("ask")
@click.argument("question")
@click.option(
    "--corpus",
    default="support",
    show_default=True,
    metavar="NAME_OR_PATH",
    help="A corpus that `corpora` lists, or a folder or file, which is indexed first.",
)
@click.option(
    "--routes",
    metavar="A,B",
    help="Routes that `routes` lists, or all. Without it: those of "
    "--preset, else all; with --route: those that a first visit runs.",
)
@pipeline_options
@click.option(
    "--make-corpus",
    is_flag=True,
    help="Make --corpus of the passages that the pipelines of --route return, or add to it.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Earlier turns: a JSON list of {"role", "text"}, or lines "user: ...".',
)
@preset_option("A preset; --parameter overrides it.")
@parameter_options
@filter_option
@click.option(
    "--answers", type=click.Choice(["none", "selected", "all"]), help="Which routes write an answer."
)
@click.option("--answered", default="", metavar="A,B", help="The routes of --answers selected.")
@answer_options
@click.option(
    "--timing",
    type=click.Choice(["shared", "isolated"]),
    help="shared: reuse equal steps between routes; isolated: repeat them.",
)
@click.option(
    "--session",
    default="",
    metavar="NAME",
    help="Remember the conversation under NAME and use its earlier turns.",
)
@click.option(
    "--hits",
    type=click.IntRange(1, 1000),
    default=comparison.DEFAULT_SHOWN_PASSAGES,
    show_default=True,
    metavar="N",
    help="Passages to print.",
)
@click.option("--text", "whole", is_flag=True, help="Print the passages in full.")
@output_options
def ask_(
    question: str,
    corpus: str,
    routes: str | None,
    history: Path | None,
    preset: str | None,
    parameters: Sequence[str],
    filters: Sequence[str],
    answers: Literal["none", "selected", "all"] | None,
    answered: str,
    own: Sequence[str],
    make_corpus: bool,
    answer_by: AnswerBy | None,
    answer_order: AnswerOrder | None,
    timing: Literal["shared", "isolated"] | None,
    session: str,
    hits: int,
    whole: bool,
    as_json: bool,
) -> int:
    """Run QUESTION through several routes and compare their hits."""
    from core.cli.corpora import indexed
    from core.cli.shapes import run_document
    from core.corpus import cautions
    from core.corpus.markdown import name_of
    from core.domain import settings
    from core.domain.filters import read_filters
    from core.domain.types import Query
    from core.engine.engine import shared_engine
    from core.engine.request import Request
    from core.routes.registry import pick

    now = settings.current()
    answers = answers or ("selected" if answered else now.answers)
    if (answers == "selected") != bool(answered):
        raise BadInput("--answers selected and --answered A,B must be given together")
    if make_corpus and not own:
        raise BadInput("--make-corpus needs --route NAME=TARGET, a pipeline that returns the passages")
    where = read_filters(filters)
    engine = shared_engine()
    named = preset_of(engine, preset) if preset is not None else None
    chosen = chosen_by(named, pick(routes) if routes is not None else [])
    if not chosen:
        chosen = [route for route in pick("all") if route.first or not own]
    chosen = with_own(chosen, own)
    applied = with_preset(named, chosen, read_parameters(parameters, chosen))
    query = Query(question, read_history(history) if history else ())
    if make_corpus:
        _make_corpus(engine, corpus, own, query)
    job = engine.start(
        Request(
            query,
            indexed(corpus, now),
            applied.routes,
            applied.parameters,
            answers=answers,
            answered=tuple(route.name for route in pick(answered)) if answered else (),
            timing=timing or now.timing,
            session=session,
            style=answer_style(answer_by, answer_order, now, applied.evidence),
            where=where,
        )
    )
    run = _wait(job)
    if engine.store is not None:
        engine.store.flush()  # so that what could not be stored is told here
        job.warnings += [line for line in engine.store.warnings if line not in job.warnings]
    searched = engine.corpus(run.corpus)
    warned = cautions.of_run(run, searched.info)
    warnings = [*job.warnings, *(caution.line() for caution in warned)]
    for warning in warnings:
        note(f"warning: {warning}")
    cautioned = [asdict(caution) for caution in warned]
    document = {**run_document(run), "warnings": warnings, "cautions": cautioned}
    emit(
        document,
        lambda: comparison.comparison(run, shown=hits, whole=whole, named=lambda one: name_of(searched, one)),
        as_json=as_json,
    )
    return 0 if run.status == "done" and any(result.status == "ok" for result in run.results) else 1


def _make_corpus(engine: Engine, corpus: str, own: Sequence[str], query: Query) -> None:
    """Index what the pipelines given return for the question."""
    from core.engine import returned_corpus

    bar = ProgressBar("passages")
    with stoppable() as asked:
        added = returned_corpus.grow(engine, corpus, own, query, progress=bar, cancel=asked, warn=note)
    bar.close()
    note(f"{corpus}: {added:,} new passages returned by {', '.join(own)}")


def _wait(job: Job) -> Run:
    """Wait for the finished run; after Ctrl-C return what was finished."""
    try:
        return job.wait()
    except KeyboardInterrupt:
        note("stopping; finished work is saved")
        job.cancel()
        return job.wait()


def read_parameters(given: Sequence[str], chosen: Sequence[Route]) -> dict[str, dict[str, str]]:
    """{route: {parameter: value}} from "route.parameter=value", checked against the routes chosen."""
    parameters: dict[str, dict[str, str]] = {}
    for item in given:
        name, equals, value = item.partition("=")
        route, dot, parameter = name.rpartition(".")  # an embedder's name may have dots
        if not (equals and dot and route and parameter):
            raise BadInput(f"cannot read parameter {item!r}; write ROUTE.NAME=VALUE, for example hyde.n=3")
        parameters.setdefault(route, {})[parameter] = value
    known = {route.name: route for route in chosen}
    for name, values in parameters.items():
        if name not in known:
            raise BadInput(
                f"parameters for {name!r}, which is not one of the chosen routes: {', '.join(known)}"
            )
        known[name].settle(values)
    return parameters


def read_history(path: Path) -> tuple[Turn, ...]:
    """Read a conversation, oldest turn first; a line without a speaker continues the turn before it."""
    from core.domain.conversation import turns

    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read history {path}: {error}") from None
    items: Any = []
    if text.startswith("["):
        try:
            items = json.loads(text)
        except ValueError as error:
            raise BadInput(f"history {path} is not valid JSON: {error}") from None
        return turns(items, f"history {path}")
    for number, line in enumerate(text.split("\n"), 1):
        if said := _SAID.fullmatch(line.strip()):
            items.append({"role": said[1].lower(), "text": said[2]})
        elif items:
            items[-1]["text"] += f"\n{line}"
        elif line.strip():
            raise BadInput(
                f'history {path} line {number}: start the line with "user: ..." or "assistant: ..."'
            )
    return turns(items, f"history {path}")
