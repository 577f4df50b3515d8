"""Turns the outcomes of an evaluation into the figures of `metrics.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from core.errors import BadInput
from core.evaluate import statistics
from core.evaluate.dataset import LabelledSet
from core.evaluate.metrics import COMPARED, METRICS, Values, by_question, measures
from core.evaluate.runner import Outcome, Outcomes
from core.types import Status

MODE_METRICS = ("ndcg@10", "recall@10")
ByRoute = dict[str, dict[str, Values]]  # route -> question -> metric -> value


def summarise(
    labelled: LabelledSet, outcomes: Outcomes, routes: Sequence[str], *, baseline: str | None = None
) -> dict[str, Any]:
    """The figures of every route over `outcomes`, compared with `baseline` (the first route unless given).

    Means are over the questions with a relevant passage (graded `relevant_from` or more) at which the route
    ended well; the others are counted beside them ("unlabelled", "failed"), never as zero. Differences are
    over the questions at which both routes ended well; p-values are adjusted over all routes and metrics.
    """
    baseline = check_baseline(baseline, routes)
    labels = {q.id: labelled.qrels[q.id] for q in labelled.questions if labelled.labelled(q.id)}
    values = {route: _values(labels, outcomes, route, labelled.relevant_from) for route in routes}
    modes = _modes(labelled, outcomes)
    asked = [q for q in labelled.questions if q.id in outcomes]
    return {
        "dataset": labelled.name,
        "queries": len(asked),
        "labelled": sum(q.id in labels for q in asked),
        "unlabelled": sum(q.id not in labels for q in asked),
        "baseline": baseline,
        "measures": {
            name: f"1 - {measure}" if name == "unjudged@10" else str(measure)
            for name, measure in measures(labelled.relevant_from).items()
        },
        "statistics": {
            "interval": f"95 % percentile bootstrap of the mean, {statistics.RESAMPLES} resamples",
            "test": f"paired randomisation, two-sided, {statistics.RESAMPLES} resamples, Holm-adjusted",
            "seed": statistics.SEED,
            "alpha": statistics.ALPHA,
        },
        "routes": _compared(
            values,
            {r: _of_route(o[r] for o in outcomes.values() if r in o) for r in routes},
            baseline,
            METRICS,
        ),
        "by_mode": _by_mode(values, modes, baseline),
    }


def check_baseline(baseline: str | None, routes: Sequence[str]) -> str:
    """The route to compare with; BadInput if it is not among `routes`."""
    if baseline is not None and baseline not in routes:
        raise BadInput(f"baseline {baseline!r} is not among the routes: {', '.join(routes)}")
    return baseline or routes[0]


def _values(
    labels: Mapping[str, Mapping[str, int]], outcomes: Outcomes, route: str, relevant_from: int
) -> dict[str, Values]:
    rankings = {
        question: routes[route].hits
        for question, routes in outcomes.items()
        if question in labels and route in routes and routes[route].status == "ok"
    }
    return by_question(labels, rankings, relevant_from=relevant_from)


def _of_route(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What does not depend on labels: time, failures and model use."""
    import numpy as np

    seen = list(outcomes)
    ok = [one.ms for one in seen if one.status == "ok"]
    p50, p95 = (float(value) for value in np.percentile(ok, [50, 95])) if ok else (None, None)
    return {
        "p50_ms": p50,
        "p95_ms": p95,
        "failed": sum(one.status != "ok" for one in seen),
        "statuses": {status: sum(one.status == status for one in seen) for status in get_args(Status)},
        "errors": sorted({one.error for one in seen if one.error})[:5],
        "llm_calls": sum(one.calls for one in seen),
        "prompt_tokens": sum(one.prompt_tokens for one in seen),
        "completion_tokens": sum(one.completion_tokens for one in seen),
    }


def _compared(
    values: ByRoute, other: Mapping[str, dict[str, Any]], baseline: str, metrics: Sequence[str]
) -> dict[str, Any]:
    """Means with intervals, and the difference of each route from the baseline; one Holm family."""
    table = {route: {**_means(values[route], metrics), **other.get(route, {})} for route in values}
    _adjust(
        [
            (table[route], _differences(values, route, baseline, metrics))
            for route in values
            if route != baseline
        ]
    )
    return table


def _by_mode(values: ByRoute, modes: Mapping[str, list[str]], baseline: str) -> dict[str, Any]:
    """Two metrics for each kind of question; all kinds are one Holm family."""
    tables: dict[str, dict[str, Any]] = {}
    found = []
    for mode, questions in modes.items():
        within = {r: {q: by[q] for q in questions if q in by} for r, by in values.items()}
        tables[mode] = {route: _means(within[route], MODE_METRICS) for route in within}
        found += [
            (tables[mode][route], _differences(within, route, baseline, MODE_METRICS))
            for route in within
            if route != baseline
        ]
    _adjust(found)
    return tables


def _means(values: Mapping[str, Values], metrics: Sequence[str]) -> dict[str, Any]:
    """The mean of each metric over the `n` questions (None without any); intervals of the compared ones."""
    columns = {name: [one[name] for one in values.values()] for name in metrics}
    means = {name: sum(column) / len(column) if column else None for name, column in columns.items()}
    intervals = {name: statistics.interval(columns[name]) for name in metrics if name in COMPARED}
    return {
        **means,
        "n": len(values),
        "ci95": {name: list(ends) if ends else None for name, ends in intervals.items()},
    }


def _differences(
    values: ByRoute, route: str, baseline: str, metrics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    both = [question for question in values[baseline] if question in values[route]]
    found = {}
    for name in [name for name in metrics if both and name in COMPARED]:
        mine = [values[route][question][name] for question in both]
        theirs = [values[baseline][question][name] for question in both]
        delta = (sum(mine) - sum(theirs)) / len(both)
        found[name] = {"delta": delta, "p": statistics.paired_p(mine, theirs), "n": len(both)}
    return found


def _adjust(found: Sequence[tuple[dict[str, Any], dict[str, dict[str, Any]]]]) -> None:
    """Give every comparison of one family its Holm-adjusted p and what may be said."""
    family = {
        (i, name): one["p"] for i, (_, by_metric) in enumerate(found) for name, one in by_metric.items()
    }
    adjusted = statistics.holm(family)
    for i, (row, by_metric) in enumerate(found):
        for name, one in by_metric.items():
            one["p_holm"] = adjusted[i, name]
            one["verdict"] = statistics.verdict(one["delta"], one["p_holm"])
        row["vs_baseline"] = by_metric


def _modes(labelled: LabelledSet, outcomes: Outcomes) -> dict[str, list[str]]:
    modes: dict[str, list[str]] = {}
    for question in labelled.questions:
        if question.mode and question.id in outcomes:
            modes.setdefault(question.mode, []).append(question.id)
    return dict(sorted(modes.items()))
