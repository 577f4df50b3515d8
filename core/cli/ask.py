"""`ask`: one question by many routes, printed side by side and stored."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from core.cli import comparison, corpora
from core.cli.commands import command, declared
from core.cli.common import emit, note, warn, working
from core.cli.named import RunOptions, chosen, merged, preset_of, with_own
from core.corpus import cautions
from core.corpus.markdown import name_of
from core.domain import settings
from core.domain.conversation import turns
from core.domain.errors import BadInput
from core.domain.types import AnswerStyle, Query, Turn
from core.engine import engine as engines
from core.engine import returned_corpus
from core.engine.request import Request
from core.evaluation.spec import option
from core.routes.registry import pick

_SAID = re.compile(r"(user|assistant):\s*(.*)", re.IGNORECASE)


@command("ask")
def ask_(
    question: str,
    corpus: str = option(
        "support", "A corpus that `corpora` lists, or a path, which is indexed first.", "NAME_OR_PATH"
    ),
    routes: str | None = option(
        None, "Names from `routes`, or all. Default: the preset's, else all; with --route: a few.", "A,B"
    ),
    how: RunOptions = declared(RunOptions, RunOptions),
    make_corpus: bool = option(False, "Make --corpus of the passages that --route returns, or add to it."),
    history: Path | None = option(
        None, 'Earlier turns: a JSON list of {"role", "text"}, or lines "user: ...".', "FILE"
    ),
    answers: Literal["none", "selected", "all"] | None = option(None, "Which routes write an answer."),
    answered: str = option("", "The routes of --answers selected.", "A,B"),
    timing: Literal["shared", "isolated"] | None = option(None, "Share equal steps between routes or not."),
    session: str = option("", "Remember the conversation under NAME and use its earlier turns.", "NAME"),
    hits: int = option(comparison.DEFAULT_SHOWN_PASSAGES, "Passages to print.", "N", least=1, most=1000),
    whole: bool = option(False, "Print the passages in full.", flags="--text"),
) -> int:
    """Run QUESTION through several routes and compare their hits."""
    own = how.use_pipelines()
    now = settings.current()
    answers = answers or ("selected" if answered else now.answers)
    if (answers == "selected") != bool(answered):
        raise BadInput("--answers selected and --answered A,B must be given together")
    if make_corpus and not own:
        raise BadInput("--make-corpus needs --route NAME=TARGET, a pipeline that returns the passages")
    engine = engines.shared_engine()
    kept = preset_of(engine, how.preset)
    picked = chosen(routes, kept) or [route for route in pick("all") if route.first or not own]
    picked = with_own(picked, own)
    values = merged(kept, picked, how.parameters)
    query = Query(question, read_history(history) if history else ())
    if make_corpus:
        with working("passages") as (bar, stop):
            added = returned_corpus.grow(engine, corpus, own, query, progress=bar, cancel=stop, warn=note)
        note(f"{corpus}: {added:,} new passages returned by {', '.join(own)}")
    evidence = now.answer_evidence if kept.evidence is None else kept.evidence
    request = Request(
        query,
        corpora.indexed(corpus, now),
        tuple(route.name for route in picked),
        values,
        answers=answers,
        answered=tuple(route.name for route in pick(answered)) if answered else (),
        timing=timing or now.timing,
        session=session,
        style=AnswerStyle(how.answer_by or now.answer_by, how.answer_order or now.answer_order, evidence),
        where=how.filters,
    )
    job = engine.start(request)
    try:
        run = job.wait()
    except KeyboardInterrupt:
        note("stopping; finished work is saved")
        job.cancel()
        run = job.wait()
    if engine.store is not None:
        engine.store.flush()  # so that a failure to store is reported here
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
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read history {path}: {error}") from None
    if text.startswith("["):
        try:
            return turns(json.loads(text), f"history {path}")
        except ValueError as error:
            raise BadInput(f"history {path} is not valid JSON: {error}") from None
    items: Any = []
    for number, line in enumerate(text.split("\n"), 1):
        if said := _SAID.fullmatch(line.strip()):
            items.append({"role": said[1].lower(), "text": said[2]})
        elif items:
            items[-1]["text"] += f"\n{line}"
        elif line.strip():
            raise BadInput(f'history {path} line {number}: start the line with "user:" or "assistant:"')
    return turns(items, f"history {path}")
