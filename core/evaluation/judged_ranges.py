"""The part "judge" of an evaluation's figures in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.analysis.metrics import titled

IRRELEVANT, JUDGED = "unjudged_irrelevant", "as_judged"  # the ends of a range, by how they were had


def ends_of(judge: Mapping[str, Any] | None, route: str, metric: str) -> tuple[float, float] | None:
    """Return a route's metric with unjudged passages as not relevant, and as judged, or None if there is no
    range. The second may be the lower one: what a route did not find is missed once it is known to be
    relevant.
    """
    found = (judge or {}).get("routes", {}).get(route, {}).get(metric)
    return None if found is None else (found[IRRELEVANT], found[JUDGED])


def order_said(judge: Mapping[str, Any], metric: str, name: Callable[[str], str] = str) -> str:
    """Return a sentence on whether the order of the routes is the same at both ends."""
    if metric not in judge["orders"]:
        return f"{titled(metric)} looks deeper than the {judge['depth']} passages that were judged."
    swapped = judge["orders"][metric]["swapped"]
    if not swapped:
        return f"The order of the routes by {titled(metric)} is the same at both ends."
    first, *others = (f"{name(a)} and {name(b)}" for a, b in swapped)
    more = f", and {len(others)} more pairs" if others else ""
    return (
        f"The order of the routes by {titled(metric)} changes within the ranges: {first} swap places{more}."
    )


def orders_said(judge: Mapping[str, Any]) -> list[str]:
    """Return sentences on the order by every metric; metrics with a stable order share one line."""
    same = [metric for metric, one in judge["orders"].items() if not one["swapped"]]
    held = f"The order of the routes is the same at both ends by {', '.join(map(titled, same))}."
    return [
        *([held] if same else []),
        *(order_said(judge, metric) for metric in judge["orders"] if metric not in same),
    ]


def said(judge: Mapping[str, Any]) -> str:
    """Return sentences on the judge, how much it judged, and how far to trust it."""
    low, high = judge["kappa_ci95"]
    without = judge["without_a_grade"]
    rest = f" {without:,} got no grade and count as not relevant at both ends." if without else ""
    return (
        f"{judge['by']} judged {judge['judged']:,} passages that people left unjudged and called "
        f"{judge['relevant']:,} of them relevant; its kappa with people is {judge['kappa']:.2f} "
        f"[{low:.2f}, {high:.2f}].{rest}"
    )


def lines(judge: Mapping[str, Any], metric: str, name: Callable[[str], str] = str) -> list[str]:
    """Return all sentences for one metric: the judge, each route's range, and whether the order changes."""
    ranges = [
        f"{name(route)}: {titled(metric)} {by[metric][IRRELEVANT]:.3f} with unjudged passages as not "
        f"relevant, {by[metric][JUDGED]:.3f} as judged."
        for route, by in judge["routes"].items()
        if metric in by
    ]
    return [said(judge), *ranges, order_said(judge, metric, name)]
