"""The part "judge" of an evaluation's figures in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.evaluation.templating import say, sentences

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
    return say("judge.order", judge, metric, name)


def orders_said(judge: Mapping[str, Any]) -> list[str]:
    """Return sentences on the order by every metric; metrics with a stable order share one line."""
    return sentences("judge.orders", judge)


def said(judge: Mapping[str, Any]) -> str:
    """Return sentences on the judge, how much it judged, and how far to trust it."""
    return say("judge.said", judge)


def lines(judge: Mapping[str, Any], metric: str, name: Callable[[str], str] = str) -> list[str]:
    """Return all sentences for one metric: the judge, each route's range, and whether the order changes."""
    return sentences("judge.ranges", judge, metric, name)
