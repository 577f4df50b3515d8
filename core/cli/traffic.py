"""`traffic`: questions of real traffic, and which of them to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import click

from core.cli import corpora
from core.cli.commands import ROUTES, command
from core.cli.common import amount, cut, emit, table, warn, working
from core.cli.imports import traces_of
from core.engine import engine as engines
from core.evaluation import triage
from core.evaluation.labels.pool import runnable
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes.registry import pick
from core.store.traces_in import in_words


@click.group("traffic")
def traffic_() -> None:
    """Questions that people asked another program, from its traces."""


@command("triage", traffic_)
def triage_(
    traces: Path,
    corpus: str = option(MISSING, "The corpus of the passages.", "NAME"),
    routes: str | None = ROUTES,
    most: int = option(100, "Questions to list.", "N", least=1),
) -> int:
    """List the questions whose labels would decide most between routes.

    TRACES is a file as of `import`; nothing of it is stored. Each different question is asked through the
    routes. Listed are those on which a route's first 10 passages differ from those shown, by disagreement
    (1 - rank-biased overlap) times how often the question was asked; of equal ones those with complaints
    first. They are not a sample: a mean over the first of them is not that of your traffic.
    """
    read = traces_of(traces)
    chosen = [route.name for route in pick(routes)] if routes is not None else []
    engine = engines.shared_engine()
    source = corpora.ensured(corpus, engine.settings)
    names = list(dict.fromkeys(runnable(engine, source.name, chosen)))
    with working() as (bar, stop):
        document = triage.triage(
            engine, engine.corpus(source.name), read.traces, names, progress=bar, cancel=stop
        )
    if read.skipped:
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
    return say("commands.triage", document, differing, table(headers, rows) if rows else "")
