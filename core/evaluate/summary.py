"""Turns the outcomes of an evaluation into the figures of `metrics.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from core.errors import BadInput
from core.evaluate import answered, routing, statistics
from core.evaluate.answers import JUDGED_BY
from core.evaluate.comparison import adjust, compared, differences, means
from core.evaluate.dataset import LabelledSet
from core.evaluate.metrics import COMPARED, METRICS, Values, by_question, measures
from core.evaluate.runner import Outcome, Outcomes
from core.types import Status

MODE_METRICS = ("ndcg@10", "recall@10")
ByRoute = dict[str, dict[str, Values]]  # route -> question -> metric -> value
# The same of measures that other evaluations make; None where one does not apply.
Extra = Mapping[str, Mapping[str, Mapping[str, float | None]]]


def summarise(
    labelled: LabelledSet,
    outcomes: Outcomes,
    routes: Sequence[str],
    *,
    baseline: str | None = None,
    extra: Extra | None = None,
) -> dict[str, Any]:
    """The figures of every route over `outcomes`, compared with `baseline` (the first route unless given).

    Means are over the questions with a relevant passage (graded `relevant_from` or more) at which the route
    ended well; the others are counted beside them ("unlabelled", "failed"), never as zero. Differences are
    over the questions at which both routes ended well; p-values are adjusted over all routes and metrics.
    A route's "answers" are there if some route gave answers. `extra` has further measures, which are averaged
    and compared in the same way under "extra"; a question without a value is not counted there.
    """
    baseline = check_baseline(baseline, routes)
    labels = {q.id: labelled.qrels[q.id] for q in labelled.questions if labelled.labelled(q.id)}
    values = {route: _values(labels, outcomes, route, labelled.relevant_from) for route in routes}
    modes = _modes(labelled, outcomes)
    asked = [q for q in labelled.questions if q.id in outcomes]
    table = compared(values, baseline, METRICS, COMPARED, COMPARED)
    written = answered.blocks(labelled, outcomes, routes, baseline)
    more = _extra(extra, baseline) if extra else {}
    for route, row in table.items():
        row |= _of_route(o[route] for o in outcomes.values() if route in o)
        if route in written:
            row |= {"answers": written[route], "supported_accuracy": written[route]["supported_accuracy"]}
        if route in more:
            row["extra"] = more[route]
        if chosen := {q: by[route].said["class"] for q, by in outcomes.items() if _class(by.get(route))}:
            row["routing"] = routing.block(
                chosen, {q.id: q.mode for q in asked}, _turned(values), route, MODE_METRICS[0]
            )
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
        **({"answers": JUDGED_BY} if written else {}),
        "routes": table,
        "by_mode": _by_mode(values, modes, baseline),
    }


def _class(outcome: Outcome | None) -> bool:
    return outcome is not None and "class" in outcome.said


def _turned(values: ByRoute) -> dict[str, dict[str, float]]:
    """Question -> route -> nDCG@10."""
    turned: dict[str, dict[str, float]] = {}
    for route, by in values.items():
        for question, measured in by.items():
            turned.setdefault(question, {})[route] = measured[MODE_METRICS[0]]
    return turned


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


def _extra(extra: Extra, baseline: str) -> dict[str, dict[str, Any]]:
    names = list(dict.fromkeys(name for by in extra.values() for row in by.values() for name in row))
    return compared(extra, baseline, names, names, names)


def _by_mode(values: ByRoute, modes: Mapping[str, list[str]], baseline: str) -> dict[str, Any]:
    """Two metrics for each kind of question; all kinds are one Holm family."""
    tables: dict[str, dict[str, Any]] = {}
    found = []
    for mode, questions in modes.items():
        within = {r: {q: by[q] for q in questions if q in by} for r, by in values.items()}
        tables[mode] = {route: means(within[route], MODE_METRICS, MODE_METRICS) for route in within}
        found += [
            (tables[mode][route], differences(within, route, baseline, MODE_METRICS))
            for route in within
            if route != baseline
        ]
    adjust(found)
    return tables


def _modes(labelled: LabelledSet, outcomes: Outcomes) -> dict[str, list[str]]:
    modes: dict[str, list[str]] = {}
    for question in labelled.questions:
        if question.mode and question.id in outcomes:
            modes.setdefault(question.mode, []).append(question.id)
    return dict(sorted(modes.items()))
