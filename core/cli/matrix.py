"""`matrix`: harnesses by retrievers on one labelled set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.api.matrix import matrix
from core.cli.commands import argument, command
from core.cli.common import emit, note, table
from core.evaluation.spec import option


@command("matrix")
def matrix_(
    target: str = argument("SET"),
    harness: str = option("one_shot,iterative,agent", "", "A,B"),
    retrievers: str = option("bm25,dense,hybrid,grep", "", "A,B"),
    queries: int | None = option(None, "A sample of N questions.", "N", least=1),
    split: str = option("test", "dev, test or all."),
    scripted: bool = option(False, "Agents follow a script and ask no model."),
    answers: bool = option(False, "Also measure answers: correct, and supported by labels."),
) -> int:
    """Measure each way to search with each retriever on the questions of SET.

    one_shot searches once; iterative looks up the names that it finds; agent locates passages and reads files
    (route read_files). Each sees nine passages of a question. Prints the recall of labelled passages seen,
    that of each hop of questions with several, tokens, calls, steps and seconds.

    --json writes {set, scripted, rows}. A row has harness, retriever, route, n (labelled questions), failed,
    error (the first), and as {mean, ci95, n}: recall, complete (all labelled passages seen), tokens, calls,
    steps, seconds and, with --answers, correct and supported; per_hop is a list of these.
    """
    rows = matrix(
        target,
        [name.strip() for name in harness.split(",")],
        [name.strip() for name in retrievers.split(",")],
        queries=queries,
        scripted=scripted,
        split=split,
        answers=answers,
    )
    for row in rows:
        if row["failed"]:
            note(f"{row['harness']} with {row['retriever']} failed {row['failed']} times: {row['error']}")
    emit({"set": target, "scripted": scripted, "rows": rows}, _text(rows))
    return 1 if any(row["failed"] for row in rows) else 0


def _text(rows: Sequence[Mapping[str, Any]]) -> str:

    answers = [name for name in ("correct", "supported") if rows and name in rows[0]]
    heads = ["harness", "retriever", "n", "failed", "recall seen", "per hop", *answers]
    heads += ["tokens", "calls", "steps", "s"]
    cells = []
    for row in rows:
        hops = " ".join(f"{hop['mean']:.3f}" for hop in row["per_hop"][:4]) or "-"
        figures = (_figure(row[name]) for name in answers)
        spent = (f"{row[name]['mean'] or 0:.0f}" for name in ("tokens", "calls", "steps"))
        about = row["harness"], row["retriever"], row["n"], row["failed"], _figure(row["recall"])
        cells.append((*about, hops, *figures, *spent, f"{row['seconds']['mean'] or 0:.3f}"))
    return table(heads, cells)


def _figure(found: Mapping[str, Any]) -> str:
    if found["mean"] is None:
        return "-"
    low, high = found["ci95"]
    return f"{found['mean']:.3f} ({low:.3f} to {high:.3f})"
