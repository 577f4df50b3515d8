"""`matrix`: harnesses by retrievers on one labelled set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from core.cli.common import emit, output_options


@click.command("matrix")
@click.argument("target", metavar="SET")
@click.option("--harness", default="one_shot,iterative,agent", show_default=True, metavar="A,B")
@click.option("--retrievers", default="bm25,dense,hybrid,grep", show_default=True, metavar="A,B")
@click.option("--queries", type=click.IntRange(min=1), metavar="N", help="A sample of N questions.")
@click.option("--split", default="test", show_default=True, help="dev, test or all.")
@click.option("--scripted", is_flag=True, help="Agents follow a script and ask no model.")
@output_options
def matrix_(
    target: str,
    harness: str,
    retrievers: str,
    queries: int | None,
    split: str,
    scripted: bool,
    as_json: bool,
) -> int:
    """Measure how one searches, and what with: each harness with each retriever on the questions of SET.

    one_shot searches once; iterative looks up the names that it finds; agent locates passages and reads files
    (route read_files). Each sees nine passages of a question. Prints the recall of labelled passages seen,
    that of each hop of questions with several, tokens, calls, steps and seconds, with 95% intervals.
    """
    from core.api.matrix import matrix

    rows = matrix(
        target,
        [name.strip() for name in harness.split(",")],
        [name.strip() for name in retrievers.split(",")],
        queries=queries,
        scripted=scripted,
        split=split,
        progress=not as_json,
    )
    emit({"set": target, "scripted": scripted, "rows": rows}, lambda: _text(rows), as_json=as_json)
    return 1 if any(row["failed"] for row in rows) else 0


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    from core.cli.text import table

    heads = ["harness", "retriever", "questions", "failed", "recall seen", "per hop", "tokens", "calls", "s"]
    cells = [
        [
            *(row["harness"], row["retriever"], row["questions"], row["failed"], _figure(row["recall"])),
            " ".join(f"{hop['mean']:.3f}" for hop in row["hops"][:4]) or "-",
            *(f"{row[name]['mean'] or 0:.0f}" for name in ("tokens", "calls")),
            f"{row['seconds']['mean'] or 0:.3f}",
        ]
        for row in rows
    ]
    return table(heads, cells, right=(2, 3, 6, 7, 8))


def _figure(found: Mapping[str, Any]) -> str:
    if found["mean"] is None:
        return "-"
    return f"{found['mean']:.3f} ({found['low']:.3f} to {found['high']:.3f})"
