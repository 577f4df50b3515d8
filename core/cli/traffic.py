"""`traffic`: questions of real traffic, and which of them to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import click

from core.cli.commands import command
from core.cli.common import emit, warn, working
from core.cli.imports import bytes_of, traces_of
from core.cli.text import cut, table
from core.evaluation.spec import option


@click.group("traffic")
def traffic_() -> None:
    """Questions that people asked another program, from its traces."""


@command("triage", traffic_)
def triage_(
    traces: Path,
    corpus: str = option(MISSING, "The corpus of the passages.", "NAME"),
    routes: str | None = option(
        None, "Candidates, by their names in `routes`. Default: all that ask no model.", "A,B"
    ),
    most: int = option(100, "Questions to list.", "N", least=1),
) -> int:
    """List the questions whose labels would decide most between routes.

    TRACES is a file as of `import`; nothing of it is stored. Each different question is asked through the
    routes. Listed are those on which a route's first 10 passages differ from those shown, by disagreement
    (1 - rank-biased overlap) times how often the question was asked; of equal ones those with complaints
    first. They are not a sample: a mean over the first of them is not that of your traffic.
    """
    from core.cli.corpora import ensured
    from core.engine.engine import shared_engine
    from core.evaluation import triage
    from core.evaluation.labels.pool import runnable
    from core.routes.registry import pick
    from core.store.traces_in import in_words

    read = traces_of(traces, bytes_of(traces))
    chosen = [route.name for route in pick(routes)] if routes is not None else []
    engine = shared_engine()
    source = ensured(corpus, engine.settings)
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
    emit(document, lambda: _text(document, differing))
    return 1 if stop.is_set() else 0


def _text(document: Mapping[str, Any], differing: int) -> str:
    """Format the questions to label for people."""
    routes = document["routes"]
    rows = [
        (
            cut(one["question"], 48),
            one["count"],
            *(f"{one['overlap'][route]:.3f}" if route in one["overlap"] else "-" for route in routes),
            ", ".join(
                [
                    *([f"complaints: {one['complaints']}"] if one["complaints"] else []),
                    f"passages that differ: {len(one['differs'])}" if one["differs"] else "another order",
                    *([f"overlap of the routes {one['between']:.3f}"] if one["between"] is not None else []),
                ]
            ),
        )
        for one in document["to_label"]
    ]
    headers = ("question", "count", *routes, "why")
    lines = [
        f"{document['questions']} questions of {document['traces']} traces: {document['same']} with the same "
        f"passages by every route, {differing} that differ"
    ]
    if rows:
        lines += ["", f"The {len(rows)} to label first, with each route's overlap with what was shown:", ""]
        lines.append(table(headers, rows, right=range(1, len(routes) + 2)))
    return "\n".join(lines)
