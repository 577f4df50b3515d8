"""`audit`: routes that make decisions against plain ones, and each decision against its other way."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from core.cli.ask import read_parameters
from core.cli.common import (
    columns_option,
    emit,
    model_options,
    note,
    output_options,
    parameter_options,
    stoppable,
)
from core.cli.evaluate import own_labels
from core.domain.errors import BadInput
from core.evaluation.spec import Spec

if TYPE_CHECKING:
    from core.domain.types import AnswerBy
    from core.engine.engine import Engine

QUERIES = 40
ASKED = ("split", "mode", "queries", "seed", "labels", "questions", "qrels")
INTERRUPTED = 130  # as shells say of a command that Ctrl-C ended
_FILE = click.Path(path_type=Path)


@click.command("audit")
@click.argument("target", metavar="SET")
@click.option("--routes", metavar="A,B", help="Names from `routes`. Default: all that make decisions.")
@click.option(
    "--baseline",
    metavar="ROUTE",
    default="hybrid_rrf",
    show_default=True,
    help="Route to compare with; hybrid_rrf and rerank are always asked, too.",
)
@model_options(Spec, "asked", only=ASKED, queries=QUERIES)
@columns_option
@parameter_options
@click.option(
    "--answers",
    type=click.Choice(["none", "all"]),
    help="Have the routes write answers. Default: all where a model is set up.",
)
@click.option(
    "--answer-by",
    type=click.Choice(["model", "extract"]),
    help="Answers by the language model, or copied sentences.",
)
@click.option(
    "--out",
    type=_FILE,
    metavar="DIR",
    help="Write the results here; resumes an audit that was stopped. Default: saved as audit-SET "
    "for the Evaluate page.",
)
@click.option("--fresh", is_flag=True, help="Discard the results in the folder and start over.")
@click.option("--retry-failed", is_flag=True, help="Rerun the questions that failed.")
@output_options
def audit_(
    target: str,
    routes: str | None,
    baseline: str,
    asked: dict[str, Any],
    columns: Mapping[str, str],
    parameters: Sequence[str],
    answers: Literal["none", "all"] | None,
    answer_by: AnswerBy | None,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    as_json: bool,
) -> int:
    """Measure what the decisions of routes are worth: each question is asked again with each decision turned.

    SET is the name of a corpus with questions, or a folder as `eval` takes it. For each route: its figures
    next to those of the baselines, and one planned comparison. For each kind of decision: how often it fired,
    precision, recall, the gain when it fired, and its price. Equal model calls come from the cache and are
    free.

    Stopped by Ctrl-C, or killed, the same command goes on. Exit code 130: stopped by Ctrl-C.
    """
    from core.corpus import catalogue
    from core.domain import settings
    from core.engine.engine import shared_engine
    from core.evaluation.audit import audit
    from core.evaluation.experiment_index import free_name
    from core.evaluation.experiment_store import place
    from core.routes.registry import pick

    if answers == "none" and answer_by:
        raise BadInput("--answer-by needs --answers all")
    own_labels(asked)
    engine = shared_engine()
    chosen = pick(routes) if routes is not None else []
    pick([baseline])
    given = read_parameters(parameters, chosen)
    now = settings.current()
    source = catalogue.source(target, settings=now)
    folder = out or place(now, free_name(f"audit-{source.name}", ()))
    wanted = answers == "all" or (answers is None and (answer_by == "extract" or audit.answers_here(engine)))
    spec = Spec(
        source.name,
        (),
        given,
        answers=wanted,
        answer_by=answer_by,
        baseline=baseline,
        audit=tuple(route.name for route in chosen),
        columns=columns,
        **asked,
    )
    return _performed(engine, spec, source, folder, fresh=fresh, retry=retry_failed, as_json=as_json)


def _performed(
    engine: Engine, spec: Spec, source: Any, folder: Path, *, fresh: bool, retry: bool, as_json: bool
) -> int:
    from core.cli.corpora import ensure
    from core.domain import settings
    from core.evaluation import dataset, sets
    from core.evaluation.audit import audit

    found = None
    if spec.labels is None:  # before an index is built: an invalid file is reported immediately
        found = sets.read(
            source.name,
            source.path,
            split=spec.split,
            questions=[Path(one) for one in spec.questions],
            qrels=Path(spec.qrels) if spec.qrels else None,
            columns=spec.columns,
        )
        if spec.mode:
            dataset.of_mode(found, spec.mode)
    ensure(source, settings.current())
    ready, said = audit.prepare(engine, spec, found, source.path)
    for line in ready.labelled.reading:
        note(line)
    for warning in (*said, *ready.warnings):
        note(f"warning: {warning}")
    note(f"{len(ready.labelled.questions)} questions, {len(ready.plan.routes)} routes; results in {folder}")
    stopped = f"stopped by the user; results so far are in {folder}, and the same command resumes from them"
    try:
        with stoppable() as asked:
            figures = audit.perform(
                engine,
                ready,
                folder,
                fresh=fresh,
                retry=retry,
                progress=QuestionPace(),
                said=said,
                ended=asked.is_set,
            )
    except KeyboardInterrupt:  # a second Ctrl-C, which does not wait for the figures
        note(stopped)
        return INTERRUPTED
    emit(figures, lambda: _text(figures, folder), as_json=as_json)
    if figures["interrupted"]:
        note(stopped)
        return INTERRUPTED
    good = any(row["use"]["failed"] < row["use"]["asked"] for row in figures["routes"].values())
    return 0 if good else 1


class QuestionPace:
    """A line on stderr for each finished question: how long it took, and an estimate of what is left."""

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()
        self._first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` questions are finished, those of earlier runs too."""
        now = time.monotonic()
        if self._first is None:
            self._first = done
            if done:
                note(f"{done} of {total} questions were finished before")
        elif done > self._first:
            left = (now - self._begun) / (done - self._first) * (total - done)
            more = f"; estimated {left:.0f} s left, by the mean so far" if done < total else ""
            note(f"question {done} of {total}: {now - self._last:.1f} s{more}")
        self._last = now


def _text(figures: Mapping[str, Any], folder: Path) -> str:
    """Format the tables as text."""
    from core.cli.text import table
    from core.evaluation.audit import report

    parts = []
    for title, rows in report.tables(figures):
        heads = list(dict.fromkeys(name for row in rows for name in row))
        parts += [title, table(heads, [[row.get(name, "") for name in heads] for row in rows]), ""]
    return "\n".join((*parts, f"{folder / report.TABLES} has the same tables, {report.AUDIT} all figures"))
