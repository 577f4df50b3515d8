"""The comparison of several chunkings, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.evaluation import finding
from core.evaluation.chunkings.coverage import BUDGETS
from core.evaluation.chunkings.report import IN_USE, MEAN, rows

NAMES = {
    **{f"coverage@{n}": f"coverage by {n:,} tokens" for n in BUDGETS},
    "area": "area under coverage",
    "density": "coverage per token",
    "documents": "share of the labelled documents",
}


WHOLE = "Where a whole document is labelled, all of its text counts, so that long ones weigh more."


def findings(figures: Mapping[str, Any], title: Callable[[str], str] = str) -> list[str]:
    """Return a sentence for each route, the mean of the routes first: whether its best chunking was shown to
    be better than the corpus as it is.
    """
    return [_of_route(figures, route, title) for route in rows(figures) if figures["best"].get(route)]


def failures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of core.evaluation.text.failing: the failures of each route over each chunking."""
    return {
        "queries": figures["queries"],
        "routes": {
            f"{route} over {name}": row for route, by in figures["routes"].items() for name, row in by.items()
        },
    }


def _of_route(figures: Mapping[str, Any], route: str, title: Callable[[str], str]) -> str:
    top, base, metric = figures["best"][route], figures["base"], figures["metric"]
    name = "The mean of the routes" if route == MEAN else title(route)
    if top["verdict"] == IN_USE:
        return f"{name}: no chunking covers more than {base} as it is."
    row = rows(figures)[route][top["chunking"]]
    found = finding.compared(row["vs_base"], top["chunking"], base, NAMES[metric])
    if found.shown:
        return f"{name}: {finding.sentence(found)}"
    if found.estimate is None:
        return f"{name}: {top['chunking']} covers most; it was not compared with {base}."
    most = f"{name}: {top['chunking']} covers most, not shown to be better than {base}"
    return f"{most}: {finding.figures(found)}."
