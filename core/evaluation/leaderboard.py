"""The figures of an evaluation against any baseline, by metric and route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.analysis.token_usage import prices_in
from core.evaluation import summary
from core.evaluation.experiment_store import Evaluation

Figures = Mapping[str, Any]


def against(evaluation: Evaluation, baseline: str) -> Figures:
    """Return the evaluation's figures with its routes compared with `baseline`: those of metrics.json if they
    are, else made again of its outcomes. Raises BadInput for a route that is not among its routes.
    """
    known = evaluation.figures
    if known.get("baseline") == baseline:
        return known
    before = known.get("routes", {})
    fresh = summary.summarise(
        evaluation.labelled,
        evaluation.outcomes,
        evaluation.routes,
        baseline=baseline,
        prices={name: prices_in(before.get(name, {})) for name in evaluation.routes},
    )
    rows = {}
    for name, row in fresh["routes"].items():  # nothing that compares it with the baseline of before
        kept = {
            key: one for key, one in before.get(name, {}).items() if key not in ("vs_baseline", "same_as")
        }
        if "extra" in kept:
            kept["extra"] = {key: one for key, one in kept["extra"].items() if key != "vs_baseline"}
        rows[name] = {**kept, **row}
    return {**known, **fresh, "routes": rows}


def metrics(figures: Figures) -> list[str]:
    """Return the metrics that routes are compared by, those of answers last."""
    found: dict[str, None] = {}
    rows = list(figures["routes"].values())
    for row in (*rows, *(row.get("answers", {}) for row in rows)):
        found |= dict.fromkeys(row.get("vs_baseline", ()))
    return list(found) or ["ndcg@10"]


def value(row: Mapping[str, Any], metric: str) -> float | None:
    """Return a route's mean, of its rankings or of its answers, or None if it has none."""
    found = row.get(metric, row.get("answers", {}).get(metric))
    return None if found is None else float(found)


def difference(row: Mapping[str, Any], metric: str) -> Mapping[str, Any] | None:
    """Return what its difference from the baseline shows, or None if there is nothing to compare."""
    for of in (row, row.get("answers", {})):
        if metric in of.get("vs_baseline", {}):
            found: Mapping[str, Any] | None = of["vs_baseline"][metric]
            return found
    return None


def ranked(figures: Figures, metric: str) -> list[str]:
    """Return the routes, the best in `metric` first; those without a value last."""

    def place(name: str) -> tuple[bool, float, str]:
        found = value(figures["routes"][name], metric)
        return found is None, -(found or 0.0), name

    return sorted(figures["routes"], key=place)


def distinct(figures: Figures, metric: str) -> list[str]:
    """`ranked`, with one route for those that returned the same: see core.evaluation.comparison."""
    return [name for name in ranked(figures, metric) if "same_as" not in figures["routes"][name]]
