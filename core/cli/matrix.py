"""`matrix`: harnesses by retrievers on one labelled set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.api.matrix import matrix
from core.cli.commands import argument, command
from core.cli.common import emit, listed, note, table
from core.corpus.embeddings import gate
from core.domain import settings
from core.domain.errors import BadInput
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
    noise: str = option("", "Again with N times as many unrelated passages added.", "N,N"),
    noise_from: str = option("", "Indexed corpora that they come from; the rest is generated.", "A,B"),
    yes: bool = option(False, "Embed generated passages also if that passes a limit of the settings."),
) -> int:
    """Measure each way to search with each retriever on the questions of SET.

    one_shot searches once; iterative looks up the names that it finds; agent locates passages and reads files
    (route read_files). Each sees nine passages of a question. Prints the recall of labelled passages seen,
    that of each hop of questions with several, tokens, calls, steps and seconds.

    --noise 10,100 measures everything again with 10 and 100 times as many passages of --noise-from added,
    whole, to the unchanged ones of SET. If those are too few, others are generated from their sentences; the
    cost of embedding them is reported first, and refused above embed_limit_minutes without --yes; bm25 and
    grep alone embed nothing. Indexes stay in the folder noise of the home folder until a corpus that they
    have text of is deleted.

    --json writes {set, scripted, rows}. A row has noise (times; 0: SET as it is), generated (passages),
    harness, retriever, route, n (labelled questions), failed, error (the first), and as {mean, ci95, n}:
    recall, complete (all labelled passages seen), tokens, calls, steps, seconds and, with --answers, correct
    and supported; per_hop is a list of these.
    """
    times = [int(one) if one.isdecimal() else 0 for one in listed(noise)]
    if 0 in times or bool(times) != bool(noise_from):
        raise BadInput("--noise takes numbers such as 10,100, and --noise-from the corpora to take text from")
    rows = matrix(
        target,
        listed(harness),
        listed(retrievers),
        queries=queries,
        scripted=scripted,
        split=split,
        answers=answers,
        noise=times,
        noise_from=listed(noise_from),
        begin=gate(settings.current(), confirmed=yes, told=lambda cost: note(str(cost))),
    )
    for row in rows:
        if row["failed"]:
            note(f"{row['harness']} with {row['retriever']} failed {row['failed']} times: {row['error']}")
    emit({"set": target, "scripted": scripted, "rows": rows}, _text(rows))
    return 1 if any(row["failed"] for row in rows) else 0


def _text(rows: Sequence[Mapping[str, Any]]) -> str:

    answers = [name for name in ("correct", "supported") if rows and name in rows[0]]
    added = ["noise"] if any(row["noise"] for row in rows) else []
    heads = [*added, "harness", "retriever", "n", "failed", "recall seen", "per hop", *answers]
    heads += ["tokens", "calls", "steps", "s"]
    cells = []
    for row in rows:
        hops = " ".join(f"{hop['mean']:.3f}" for hop in row["per_hop"][:4]) or "-"
        figures = (_figure(row[name]) for name in answers)
        spent = (f"{row[name]['mean'] or 0:.0f}" for name in ("tokens", "calls", "steps"))
        about = (
            *(row[name] for name in (*added, "harness", "retriever", "n", "failed")),
            _figure(row["recall"]),
        )
        cells.append((*about, hops, *figures, *spent, f"{row['seconds']['mean'] or 0:.3f}"))
    return table(heads, cells)


def _figure(found: Mapping[str, Any]) -> str:
    if found["mean"] is None:
        return "-"
    low, high = found["ci95"]
    return f"{found['mean']:.3f} ({low:.3f} to {high:.3f})"
