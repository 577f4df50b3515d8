"""Which route leads an evaluation, and what may be said of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from core.evaluation import effects, leading, summary
from core.evaluation.experiment_store import Evaluation
from core.evaluation.leading import Leader
from core.evaluation.naming import named

Figures = Mapping[str, Any]
Title = Callable[[str], str]


def against(evaluation: Evaluation, baseline: str) -> Figures:
    """The evaluation's figures with its routes compared with `baseline`: those of metrics.json where they
    are, else made again of its outcomes. BadInput for a route that is not among its routes.
    """
    known = evaluation.figures
    if known.get("baseline") == baseline and "leader" in known:  # else written by an earlier version
        return known
    fresh = summary.summarise(evaluation.labelled, evaluation.outcomes, evaluation.routes, baseline=baseline)
    before = known.get("routes", {})
    kept = {
        name: {k: v for k, v in before.get(name, {}).items() if k != "vs_baseline"}
        for name in fresh["routes"]
    }
    rows = {name: {**kept[name], **row} for name, row in fresh["routes"].items()}
    return {**known, **fresh, "routes": rows}


def metrics(figures: Figures) -> list[str]:
    """The metrics that routes are compared by, those of answers last."""
    found: dict[str, None] = {}
    for row in figures["routes"].values():
        found |= dict.fromkeys(row.get("vs_baseline", ()))
    for row in figures["routes"].values():
        found |= dict.fromkeys(row.get("answers", {}).get("vs_baseline", ()))
    return list(found) or ["ndcg@10"]


def value(row: Mapping[str, Any], metric: str) -> float | None:
    """A route's mean, of its rankings or of its answers; None where it has none."""
    found = row.get(metric, row.get("answers", {}).get(metric))
    return None if found is None else float(found)


def difference(row: Mapping[str, Any], metric: str) -> Mapping[str, Any] | None:
    """What its difference from the baseline shows; None where there is nothing to compare."""
    for of in (row, row.get("answers", {})):
        if metric in of.get("vs_baseline", {}):
            found: Mapping[str, Any] = of["vs_baseline"][metric]
            return found
    return None


def ranked(figures: Figures, metric: str) -> list[str]:
    """The routes, the best in `metric` first; those without a value last."""

    def place(name: str) -> tuple[bool, float, str]:
        found = value(figures["routes"][name], metric)
        return found is None, -(found or 0.0), name

    return sorted(figures["routes"], key=place)


def words(figures: Figures, found: Leader | None, metric: str, title: Title) -> list[str]:
    """Who leads, as `core.evaluation.leading` found, how all stand to the baseline, and what could be
    shown.
    """
    told = leading.block(found)
    if found is None or told is None:
        return [f"No route was scored in {named(metric)}, so none leads."]
    one = difference(figures["routes"][found.route], metric)
    who = leading.leader_in_words({**told, "metric": named(metric)}, figures["baseline"], one, title)
    return [
        *re.split(r"(?<=\.) (?=[^a-z])", who),
        *_verdicts(figures, metric, title),
        *_smallest(figures, metric),
    ]


def counted(figures: Figures, asked: int, title: Title) -> list[str]:
    """What was not scored and why; `asked`: the questions that were to be asked."""
    rows, said = figures["routes"], []
    if figures["queries"] < asked:
        said.append(f"It was stopped: these are figures of {figures['queries']} of {asked} questions.")
    if figures["unlabelled"]:
        said.append(
            f"{figures['unlabelled']} of {figures['queries']} questions have no relevant passage: they count "
            "for time and answers, and not for rankings."
        )
    failed = {route: row["failed"] for route, row in rows.items() if row["failed"]}
    if failed:
        named_ones = ", ".join(f"{title(route)} {count}" for route, count in failed.items())
        said.append(f"Results that did not end well, left out and not counted as 0: {named_ones}.")
    if len({row["n"] for row in rows.values()}) > 1:
        said.append(
            "Routes failed at different questions, so their means are over different questions; differences "
            "are over those that both routes ended well."
        )
    return said


def _verdicts(figures: Figures, metric: str, title: Title) -> list[str]:
    found: dict[str, list[str]] = {}
    for route in ranked(figures, metric):
        one = difference(figures["routes"][route], metric)
        if one is not None:
            found.setdefault(one["verdict"], []).append(title(route))
    if sum(map(len, found.values())) < 2:
        return []
    parts = [f"shown {kind}: {', '.join(found[kind])}" for kind in ("better", "worse") if kind in found]
    none = len(found.get("no difference shown", ()))
    parts += [f"no difference shown: {none} {'route' if none == 1 else 'routes'}"] if none else []
    return [f"Against {title(figures['baseline'])} in {named(metric)}, {'; '.join(parts)}."]


def _smallest(figures: Figures, metric: str) -> list[str]:
    compared = {
        route: {metric: one}
        for route, row in figures["routes"].items()
        if (one := difference(row, metric)) is not None
    }
    found = effects.smallest(compared, metric)
    if found is None:
        return []
    return [
        f"With these questions a true difference of {found['median']:.3f} would be seen four times in five "
        f"by one comparison alone, and one of {found['median_holm']:.3f} after the correction for all "
        f"comparisons (median over {found['comparisons']}). What is smaller may be there and not show."
    ]
