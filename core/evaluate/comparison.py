"""Means over questions and differences between routes; where a metric does not apply it is not counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.evaluate import statistics

Row = Mapping[str, float | None]  # metric -> value for one question, None where it does not apply
ByQuestion = Mapping[str, Row]
ByRoute = Mapping[str, ByQuestion]  # route -> question -> metric -> value


def compared(
    values: ByRoute, baseline: str, metrics: Sequence[str], of: Sequence[str], intervals: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The means of each route, and its differences from `baseline` in the metrics `of`: one Holm family."""
    table = {route: means(by, metrics, intervals) for route, by in values.items()}
    adjust([(table[r], differences(values, r, baseline, of)) for r in values if r != baseline])
    return table


def means(values: ByQuestion, metrics: Sequence[str], intervals: Sequence[str]) -> dict[str, Any]:
    """The mean of each metric over the questions it applies to (None without any), "n" questions, and under
    "ci95" the intervals of those in `intervals`.
    """
    columns = {name: _column(values, name) for name in metrics}
    ends = {name: statistics.interval(columns[name]) for name in metrics if name in intervals}
    return {
        **{name: sum(column) / len(column) if column else None for name, column in columns.items()},
        "n": len(values),
        "ci95": {name: list(pair) if pair else None for name, pair in ends.items()},
    }


def counted(values: ByQuestion, metrics: Sequence[str]) -> dict[str, int]:
    """Over how many questions the mean of each metric is."""
    return {name: len(_column(values, name)) for name in metrics}


def differences(
    values: ByRoute, route: str, baseline: str, metrics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The mean difference in each metric over the "n" questions at which both routes have a value."""
    found = {}
    for name in metrics:
        mine, theirs = values[route], values.get(baseline, {})
        pairs = [
            (a, b)
            for question, row in theirs.items()
            if question in mine
            and (a := mine[question].get(name)) is not None
            and (b := row.get(name)) is not None
        ]
        if pairs:
            ours, base = [a for a, _ in pairs], [b for _, b in pairs]
            delta = (sum(ours) - sum(base)) / len(pairs)
            found[name] = {"delta": delta, "p": statistics.paired_p(ours, base), "n": len(pairs)}
    return found


def adjust(found: Sequence[tuple[dict[str, Any], dict[str, dict[str, Any]]]]) -> None:
    """Put the comparisons of one family into their rows, with Holm-adjusted p and what may be said."""
    family = {
        (i, name): one["p"] for i, (_, by_metric) in enumerate(found) for name, one in by_metric.items()
    }
    adjusted = statistics.holm(family)
    for i, (row, by_metric) in enumerate(found):
        for name, one in by_metric.items():
            one["p_holm"] = adjusted[i, name]
            one["verdict"] = statistics.verdict(one["delta"], one["p_holm"])
        row["vs_baseline"] = by_metric


def _column(values: ByQuestion, name: str) -> list[float]:
    return [value for one in values.values() if (value := one.get(name)) is not None]
