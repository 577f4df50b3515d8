"""The part of `eval` that measures one source in several chunkings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from core.cli.commands import json_asked
from core.cli.common import emit, note, warn, working
from core.cli.text import amount, table
from core.domain.errors import BadInput
from core.domain.format import size
from core.domain.text import one_line
from core.evaluation.chunkings.report import rows

if TYPE_CHECKING:
    from core.corpus.source import Source
    from core.domain.settings import Settings
    from core.engine.engine import Engine
    from core.evaluation.dataset import Found
    from core.evaluation.runner import Course
    from core.evaluation.spec import Spec

MARKS = {"better": "+", "worse": "-", "no difference shown": "="}
KEY = (
    "* best of its row; + better, - worse than {base}, = no difference shown (paired randomisation, "
    "Holm-adjusted over all routes and {n} chunkings; the mean of the routes by itself)"
)


def sources(source: Source, given: str, settings: Settings, run_files: Sequence[str]) -> list[Source]:
    """Return the chunkings to measure in addition to `source`. Raises BadInput if there is none."""
    from core.corpus import catalogue

    if run_files:
        raise BadInput("--run cannot be combined with --chunkings: its replies are of one corpus")
    found = [
        catalogue.source(one, settings=settings) for one in catalogue.chosen_variants(source, settings, given)
    ]
    if not found:
        raise BadInput(f"{source.name} is cut as {source.chunking.key} itself; name another chunking, or all")
    return found


def free_place(settings: Settings, corpus: str) -> Path:
    """Return an unused folder for the evaluation."""
    from core.evaluation.background import free_name
    from core.evaluation.experiment_store import names, place

    return place(settings, free_name(f"{corpus}-chunkings", names(settings)))


def measure(
    engine: Engine,
    spec: Spec,
    found: Found | None,
    source: Source,
    out: Path,
    *,
    max_failed: float,
    **course: Unpack[Course],
) -> int:
    """Ask, save and print; the exit code."""
    from core.evaluation.chunkings import measuring
    from core.evaluation.chunkings.report import failures
    from core.evaluation.text import failing, failing_said

    group = measuring.prepare(engine, spec, found, source.path)
    known = group.parts[source.name].warnings
    warn(known)  # before hours are spent
    with working("q") as (bar, stop):
        course["ended"], course["progress"] = stop.is_set, partial(bar, "questions")
        figures = measuring.perform(engine, group, out=out, **course)
    warn(warning for warning in figures["warnings"] if warning not in known)
    failed = failures(figures)
    said = failing_said(failed, max_failed)
    if said and json_asked():
        note(said)
    emit(
        {**figures, "saved": str(out)},
        lambda: "\n".join(filter(None, [said, in_words(figures, out)])),
    )
    if figures["interrupted"]:
        note(f"stopped by the user; results so far are in {out}, and eval with --out {out} resumes from them")
    scored = any(row["n"] for by in figures["routes"].values() for row in by.values())
    return 0 if scored and not figures["interrupted"] and not failing(failed, max_failed) else 1


def in_words(figures: Mapping[str, Any], out: Path) -> str:
    """Format the chunkings, the table routes x chunkings, and the other figures."""
    from core.evaluation.chunkings.report import WHOLE, findings

    names, budget = list(figures["chunkings"]), figures["budget"]
    corpora = [
        (
            name,
            f"{row['passages']:,}",
            amount(row["tokens"], 1),
            size(row["bytes"]),
            amount(row["seconds"], 1),
            f"{row['reused']:.0%}",
            row["label"],
        )
        for name, row in figures["chunkings"].items()
    ]
    heads = ("corpus", "passages", "tokens each", "on disk", "index s", "reused", "how it is cut")
    parts = [
        f"{one_line(figures['dataset'])}: {figures['queries']} questions, {figures['labelled']} of them with "
        f"labelled text ({figures['labels']})",
        "",
        table(heads, corpora, right=range(1, 6)),
        "",
        f"Coverage: the share of the labelled text among the first {budget:,} tokens, with 95 % intervals. "
        f"At most {amount(figures['reachable'], 3)} can be reached.",
        *([WHOLE] if "whole" in figures["labels"] else []),
        _coverage(figures, names),
    ]
    key = KEY.format(base=figures["base"], n=len(names) - 1)
    parts += [key, "", *findings(figures), "", _more(figures, names)]
    return "\n".join([*parts, "", f"Written to {out}/"])


def _coverage(figures: Mapping[str, Any], names: Sequence[str]) -> str:
    lines = [
        (
            route,
            *(_cell(by.get(name), figures, route, name) for name in names),
            max((row["n"] for row in by.values()), default=0),
        )
        for route, by in rows(figures).items()
    ]
    heads = ("route", *(figures["chunkings"][name]["chunking"] for name in names), "n")
    return table(heads, lines, right=[len(heads) - 1])


def _cell(row: Mapping[str, Any] | None, figures: Mapping[str, Any], route: str, name: str) -> str:
    if row is None or row[figures["metric"]] is None:
        return "-"
    ends = f" [{row['ci95'][0]:.2f}, {row['ci95'][1]:.2f}]" if row["ci95"] else ""
    best = figures["best"][route]["chunking"] == name
    mark = MARKS.get(row["vs_base"]["verdict"], "") if row["vs_base"] else ""
    return f"{amount(row[figures['metric']], 3)}{ends} {mark}{'*' if best else ''}".rstrip()


def _more(figures: Mapping[str, Any], names: Sequence[str]) -> str:
    """Format the reading within the budget, as means over the routes if there are several."""
    route, by = next(iter(rows(figures).items()))
    shown = ("area", "density", "documents", "passages", "tokens a passage")
    lines = [
        (figures["chunkings"][name]["chunking"], *(amount(row[one], 3) for one in shown), row["n"])
        for name in names
        if (row := by.get(name)) is not None
    ]
    headers = (route, "area", "labelled share", "documents found", "passages read", "tokens a passage", "n")
    return table(headers, lines, right=range(1, len(headers)))
