"""`traffic`: questions of real traffic, and which of them to label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import click

from core.cli import corpora
from core.cli.commands import ROUTES, argument, command
from core.cli.common import amount, cut, emit, table, warn, working
from core.cli.imports import traces_of
from core.engine import engine as engines
from core.engine.imported import store_traces
from core.evaluation import triage
from core.evaluation.finding import Finding, sentence
from core.evaluation.labels import run_labels
from core.evaluation.labels.pool import runnable, store_of
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes.registry import pick
from core.store.traces_in import in_words


@click.group("traffic")
def traffic_() -> None:
    """Questions that people asked another program, from its traces."""


@command("triage", traffic_)
def triage_(
    traces: Path | None = argument("[TRACES]"),
    corpus: str = option(MISSING, "The corpus of the passages.", "NAME"),
    routes: str | None = ROUTES,
    most: int = option(100, "Questions to list.", "N", least=1),
    label_set: str | None = option(None, "Add the questions that differ to this label set.", "NAME"),
    questions: int | None = option(None, "Stop after asking N questions.", "N", least=1),
    tokens: int | None = option(None, "Stop after N tokens of language models.", "N", least=1),
    seconds: float | None = option(None, "Stop after N seconds.", "N", least=1),
) -> int:
    """List the questions whose labels would decide most between routes.

    TRACES is a file that `import` reads; without it, the imported traces of the corpus are used. Each
    distinct question is asked through the routes, the most frequent first. Questions are listed if a route's
    first 10 passages differ from those shown, by disagreement (1 - rank-biased overlap) times how often the
    question was asked; among equals, those with complaints come first. They are not a sample: a mean over
    the first of them is not that of your traffic.

    With --label-set, TRACES are imported, bad scores in them become complaints, and the next call asks only
    the questions that are left. Label shows the passages of the set in a random order that favours decisive
    ones. Those graded so far are a sample, so each route is compared with what was shown over all traffic.
    """
    read = traces_of(traces) if traces is not None else None
    chosen = [route.name for route in pick(routes)] if routes is not None else []
    engine = engines.shared_engine()
    source = corpora.ensured(corpus, engine.settings)
    names = list(dict.fromkeys(runnable(engine, source.name, chosen)))
    opened = engine.corpus(source.name)
    with working() as (bar, stop):
        if read is None:
            recorded: Iterable[triage.TrafficRequest] = triage.of_store(store_of(engine), source.name)
        else:
            recorded = triage.of_traces(read.traces, opened)
            if label_set is not None:
                found = store_traces(engine, read.traces, source.name, progress=bar, cancel=stop)
                run_labels.from_traces(store_of(engine), found.feedback)
        budget = triage.Budget(questions, tokens, seconds)
        more: Any = {"budget": budget, "label_set": label_set, "progress": bar, "cancel": stop}
        document = triage.triage(engine, opened, recorded, names, **more)
    if read is not None and read.skipped:
        document["warnings"].append(f"left out or mended: {in_words(read.skipped)}")
    warn(document["warnings"])
    differing = len(document["to_label"])
    document["to_label"] = document["to_label"][:most]
    emit(document, _text(document, differing))
    return 1 if stop.is_set() else 0


def _text(document: Mapping[str, Any], differing: int) -> str:
    """Format the questions to label for people."""
    routes = document["routes"]
    rows = []
    for one in document["to_label"]:
        overlaps = [amount(one["overlap"].get(route), 3) for route in routes]
        why = f"passages that differ: {len(one['differs'])}, complaints: {one['complaints']}"
        rows.append((cut(one["question"], 48), one["count"], *overlaps, amount(one["between"], 3), why))
    headers = ("question", "count", *routes, "between", "why")
    beyond = [sentence(Finding(**one)) for one in document.get("beyond_shown", ())]
    return say("commands.triage", document, differing, table(headers, rows) if rows else "", beyond)
