"""`audit`: routes that make decisions against plain ones, and each decision against its other way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from core.cli import corpora
from core.cli.commands import COLUMNS, PARAMETERS, argument, command, declared
from core.cli.common import emit, note, table, warn, working
from core.cli.evaluate import check_labels
from core.cli.named import read_parameters
from core.corpus import catalogue
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.needs import Need
from core.engine import engine as engines
from core.engine.availability import missing
from core.evaluation import sets
from core.evaluation.audit import audit
from core.evaluation.background import free_name
from core.evaluation.experiment_store import place
from core.evaluation.runner import Course
from core.evaluation.spec import Spec, option
from core.routes.registry import pick

QUERIES = 40
ASKED = ("split", "mode", "queries", "seed", "labels", "questions", "qrels")
INTERRUPTED = 130  # as shells say of a command that Ctrl-C ended


@command("audit")
def audit_(
    target: str = argument("SET"),
    routes: str | None = option(None, "Names from `routes`. Default: all that make decisions.", "A,B"),
    baseline: str = option("hybrid_rrf", "Route to compare with; rerank is asked, too.", "ROUTE"),
    asked: dict[str, Any] = declared(Spec, only=ASKED, queries=QUERIES),
    columns: Mapping[str, str] = COLUMNS,
    parameters: Sequence[str] = PARAMETERS,
    answers: Literal["none", "all"] | None = option(None, "Default: all where a model is set up."),
    answer_by: Literal["model", "extract"] | None = option(None, "The model, or copied sentences."),
    out: Path | None = option(None, "Results; resumes a stopped audit. Default: saved as audit-SET.", "DIR"),
    fresh: bool = option(False, "Discard the results in the folder and start over."),
    retry_failed: bool = option(False, "Rerun the questions that failed."),
) -> int:
    """Measure what the decisions of routes are worth, by asking again with each of them turned.

    SET is the name of a corpus with questions, or a folder as `eval` takes it. For each route: its figures
    next to those of the baselines, and one planned comparison. For each kind of decision: how often it fired,
    precision, recall, the gain when it fired, and its price. Equal model calls come from the cache and are
    free.

    Stopped by Ctrl-C, or killed, the same command goes on. Exit code 130: stopped by Ctrl-C.
    """
    if answers == "none" and answer_by:
        raise BadInput("--answer-by needs --answers all")
    check_labels(asked)
    engine = engines.shared_engine()
    chosen = pick(routes) if routes is not None else []
    pick([baseline])
    now = settings.current()
    source = catalogue.source(target, settings=now)
    folder = out or place(now, free_name(f"audit-{source.name}", ()))
    spec = Spec(
        source.name,
        (),
        read_parameters(parameters, chosen),
        answers=answers == "all"
        or (answers is None and (answer_by == "extract" or Need.LLM not in missing(engine))),
        answer_by=answer_by,
        baseline=baseline,
        audit=tuple(route.name for route in chosen),
        columns=columns,
        **asked,
    )
    # before an index is built: an invalid file is reported immediately
    found = sets.of_spec(spec, source.path) if spec.labels is None else None
    corpora.ensure(source, now)
    ready = audit.prepare(engine, spec, found)
    for line in ready.labelled.reading:
        note(line)
    warn(ready.warnings)
    note(f"{len(ready.labelled.questions)} questions, {len(ready.plan.routes)} routes; results in {folder}")
    stopped = f"stopped by the user; results so far are in {folder}, and the same command resumes from them"
    try:
        with working() as (bar, stop):
            course: Course = {"fresh": fresh, "retry": retry_failed, "ended": stop.is_set}
            course["progress"] = partial(bar, "questions")
            figures = audit.perform(engine, ready, folder, **course)
    except KeyboardInterrupt:  # a second Ctrl-C, which does not wait for the figures
        note(stopped)
        return INTERRUPTED
    emit(figures, _text(figures, folder))
    if figures["interrupted"]:
        note(stopped)
        return INTERRUPTED
    good = any(row["use"]["failed"] < row["use"]["asked"] for row in figures["routes"].values())
    return 0 if good else 1


def _text(figures: Mapping[str, Any], folder: Path) -> str:
    """Format the tables as text."""
    parts = []
    for title, rows in audit.tables(figures):
        heads = list(dict.fromkeys(name for row in rows for name in row))
        parts += [title, table(heads, [[row.get(name, "") for name in heads] for row in rows]), ""]
    return "\n".join((*parts, f"{folder / audit.TABLES} has the same tables, {audit.AUDIT} all figures"))
