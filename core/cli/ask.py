"""`ask`: one question by many routes, printed side by side and stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core.cli import comparison
from core.cli.commands import (
    ANSWER_BY,
    ANSWER_ORDER,
    ENV,
    FILTERS,
    OWN_ROUTES,
    PARAMETERS,
    PRESET,
    PYTHON,
    command,
    use_pipelines,
)
from core.cli.common import emit, note, warn, working
from core.cli.named import chosen, merged, preset_of, with_own
from core.domain.errors import BadInput
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.domain.types import Turn

_SAID = re.compile(r"(user|assistant):\s*(.*)", re.IGNORECASE)


@command("ask")
def ask_(
    question: str,
    corpus: str = option(
        "support",
        "A corpus that `corpora` lists, or a folder or file, which is indexed first.",
        "NAME_OR_PATH",
    ),
    routes: str | None = option(
        None,
        "Routes that `routes` lists, or all. Without it: those of "
        "--preset, else all; with --route: those that a first visit runs.",
        "A,B",
    ),
    own_routes: Sequence[str] = OWN_ROUTES,
    python: str | None = PYTHON,
    env: Sequence[str] = ENV,
    make_corpus: bool = option(
        False, "Make --corpus of the passages that the pipelines of --route return, or add to it."
    ),
    history: Path | None = option(
        None, 'Earlier turns: a JSON list of {"role", "text"}, or lines "user: ...".', "FILE"
    ),
    preset: str | None = PRESET,
    parameters: Sequence[str] = PARAMETERS,
    filters: Sequence[str] = FILTERS,
    answers: Literal["none", "selected", "all"] | None = option(None, "Which routes write an answer."),
    answered: str = option("", "The routes of --answers selected.", "A,B"),
    answer_by: Literal["model", "extract"] | None = ANSWER_BY,
    answer_order: Literal["best first", "best at both ends"] | None = ANSWER_ORDER,
    timing: Literal["shared", "isolated"] | None = option(
        None, "shared: reuse equal steps between routes; isolated: repeat them."
    ),
    session: str = option("", "Remember the conversation under NAME and use its earlier turns.", "NAME"),
    hits: int = option(comparison.DEFAULT_SHOWN_PASSAGES, "Passages to print.", "N", least=1, most=1000),
    whole: bool = option(False, "Print the passages in full.", flags="--text"),
) -> int:
    """Run QUESTION through several routes and compare their hits."""
    from core.cli.corpora import indexed
    from core.corpus import cautions
    from core.corpus.markdown import name_of
    from core.domain import settings
    from core.domain.filters import read_filters
    from core.domain.types import AnswerStyle, Query
    from core.engine import returned_corpus
    from core.engine.engine import shared_engine
    from core.engine.request import Request
    from core.routes.registry import pick

    own = use_pipelines(own_routes, python, env)
    now = settings.current()
    answers = answers or ("selected" if answered else now.answers)
    if (answers == "selected") != bool(answered):
        raise BadInput("--answers selected and --answered A,B must be given together")
    if make_corpus and not own:
        raise BadInput("--make-corpus needs --route NAME=TARGET, a pipeline that returns the passages")
    where = read_filters(filters)
    engine = shared_engine()
    kept = preset_of(engine, preset)
    picked = chosen(routes, kept) or [route for route in pick("all") if route.first or not own]
    picked = with_own(picked, own)
    values = merged(kept, picked, parameters)
    query = Query(question, read_history(history) if history else ())
    if make_corpus:
        with working("passages") as (bar, stop):
            added = returned_corpus.grow(engine, corpus, own, query, progress=bar, cancel=stop, warn=note)
        note(f"{corpus}: {added:,} new passages returned by {', '.join(own)}")
    job = engine.start(
        Request(
            query,
            indexed(corpus, now),
            tuple(route.name for route in picked),
            values,
            answers=answers,
            answered=tuple(route.name for route in pick(answered)) if answered else (),
            timing=timing or now.timing,
            session=session,
            style=AnswerStyle(
                answer_by or now.answer_by,
                answer_order or now.answer_order,
                now.answer_evidence if kept.evidence is None else kept.evidence,
            ),
            where=where,
        )
    )
    try:
        run = job.wait()
    except KeyboardInterrupt:
        note("stopping; finished work is saved")
        job.cancel()
        run = job.wait()
    if engine.store is not None:
        engine.store.flush()  # so that what could not be stored is told here
        job.warnings += [line for line in engine.store.warnings if line not in job.warnings]
    searched = engine.corpus(run.corpus)
    warned = cautions.of_run(run, searched.info)
    warnings = [*job.warnings, *(caution.line() for caution in warned)]
    warn(warnings)
    emit(
        {**comparison.run_document(run), "warnings": warnings, "cautions": [asdict(one) for one in warned]},
        lambda: comparison.comparison(run, shown=hits, whole=whole, named=lambda one: name_of(searched, one)),
    )
    return 0 if run.status == "done" and any(result.status == "ok" for result in run.results) else 1


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
