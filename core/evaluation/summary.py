"""Turns the outcomes of an evaluation into the figures of `metrics.json`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

from pydantic_core import to_jsonable_python

from core.analysis.metrics import ANSWERS, COMPARED, HEADLINE, METRICS, QUALITY, UNJUDGED, Values, measures
from core.analysis.token_usage import PRICES, Prices
from core.backends import question_classifier
from core.domain import settings
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Status
from core.evaluation import (
    costs,
    deciding,
    effects,
    embedder_change,
    equal_routes,
    oracle,
    routing,
    scoring,
    stability,
    statistics,
)
from core.evaluation.answers import JUDGED_BY
from core.evaluation.comparison import compared, differences, distinct_family, means_of
from core.evaluation.dataset import LabelledSet
from core.evaluation.outcome import Outcome, Outcomes
from core.evaluation.pairs import EVERY
from core.evaluation.questions import question_file
from core.evaluation.scoring import route_values

MODE_METRICS = ("ndcg@10", "recall@10")
ByRoute = dict[str, dict[str, Values]]  # route -> question -> metric -> value
# The same for further measures; None if a measure does not apply.
Extra = Mapping[str, Mapping[str, Mapping[str, float | None]]]


def summarise(
    labelled: LabelledSet,
    outcomes: Outcomes,
    routes: Sequence[str],
    *,
    baseline: str | None = None,
    extra: Extra | None = None,
    again: Sequence[Outcomes] = (),
    prices: Mapping[str, Prices] | None = None,
) -> dict[str, Any]:
    """Return the figures of every route over `outcomes`, compared with `baseline` (the first route unless
    given). Means are over the questions with a relevant passage (graded `relevant_from` or more) at which the
    route ended well; the others are counted separately ("unlabelled", "failed"), never as zero. Differences
    are over the questions at which both routes ended well. They are adjusted over all routes in one metric,
    and routes that returned the same count once ("equal", and "same_as" for the routes that another
    represents). `again` are further rounds of the routes that ask a model, which show how stable their
    figures are. A route's "answers" are present if some route gave answers. `extra` has further measures,
    which are averaged and compared in the same way under "extra"; a question without a value is not counted
    there. `prices` are those of each route's model; without them a route's cost is its tokens.
    """
    baseline = check_baseline(baseline, routes)
    labels = {q.id: labelled.qrels[q.id] for q in labelled.questions if labelled.labelled(q.id)}
    values = {route: route_values(labelled, outcomes, route) for route in routes}
    asked = [q for q in labelled.questions if q.id in outcomes]
    modes = {mode: [q.id for q in asked if q.mode == mode] for mode in sorted({q.mode or "" for q in asked})}
    modes.pop("", None)  # of the questions without a mode
    equal = equal_routes.find(outcomes, routes)
    same = equal_routes.standing_for(equal, baseline)
    table = compared(values, baseline, METRICS, COMPARED, QUALITY, same)
    by_question: dict[str, dict[str, float]] = {}
    for route, by in values.items():
        for question, measured in by.items():
            by_question.setdefault(question, {})[route] = measured[HEADLINE]
    written = scoring.blocks(labelled, outcomes, routes, baseline, same)
    names = list(dict.fromkeys(name for by in (extra or {}).values() for row in by.values() for name in row))
    more = compared(extra, baseline, names, names, names, same) if extra else {}
    for route, row in table.items():
        row |= _of_route(o[route] for o in outcomes.values() if route in o)
        ended = [q for q, by in outcomes.items() if route in by and by[route].status == "ok"]
        row |= {"scored": row["n"], "not_scored": sum(q not in labels for q in ended)}
        if prices:
            row[PRICES] = list(prices[route])
        if route in written:
            row |= {"answers": written[route], "supported_accuracy": written[route]["supported_accuracy"]}
        if route in more:
            row["extra"] = more[route]
        said = {q: by[route].said for q, by in outcomes.items() if route in by}
        if chosen := {q: one["class"] for q, one in said.items() if "class" in one}:
            kinds = {q.id: q.mode for q in asked}
            row["routing"] = routing.block(chosen, kinds, by_question, route, HEADLINE)
            made: Mapping[str, Any] = {}
            with suppress(Unavailable):  # a router without a training record
                made = question_classifier.read(settings.current().home).made
            if (seen := routing.seen_in_training(labelled.name, made)) is not None:
                row["routing"]["trained_on"] = seen
        if route in same:
            row["same_as"] = same[route]
    rounds = [
        _whole(labelled, one, dict.fromkeys(route for by in one.values() for route in by))
        for one in ((outcomes, *again) if again else ())
    ]
    stable = stability.stability(rounds, baseline, (*COMPARED, *ANSWERS)) if rounds else {}
    against = {r: row["vs_baseline"] for r, row in table.items() if r != baseline and r not in same}
    distinct = {route: by for route, by in values.items() if route not in same}
    decision = deciding.plain(
        {route: {q: row[HEADLINE] for q, row in by.items()} for route, by in distinct.items()},
        outcomes,
        same.get(baseline, baseline),
        modes or {EVERY: list(outcomes)},
        prices or {},
    )
    return {
        **({"generated": made} if (made := question_file.block(asked)) else {}),
        "dataset": labelled.name,
        "queries": len(asked),
        "labelled": sum(q.id in labels for q in asked),
        "by_document": labelled.by_document([q.id for q in asked]),
        "unlabelled": sum(q.id not in labels for q in asked),
        "baseline": baseline,
        "measures": {
            name: f"1 - {measure}" if name.startswith("unjudged") else str(measure)
            for name, measure in measures(labelled.relevant_from).items()
        },
        "unjudged": UNJUDGED,
        "statistics": {
            "interval": "95% t+1: t interval with a pseudo-observation at each bound",
            "difference": "the same of the mean paired difference, at the level at which Holm tests it",
            "effect": "d_z: mean over standard deviation of the differences; superiority: wins, ties as half",
            "detectable": "smallest difference that is shown with power 0.8",
            "test": "exact paired sign-flip test and interval, two-sided, Holm-adjusted for each metric",
            "alpha": statistics.ALPHA,
        },
        **({"answers": JUDGED_BY} if written else {}),
        "equal": to_jsonable_python(equal),
        "decision": {"metric": HEADLINE, **decision.document()},
        "detectable": {name: effects.smallest(against, name) for name in COMPARED},
        "oracle": oracle.block(oracle.oracle(distinct, HEADLINE)),
        "fronts": {
            cost: list(costs.front(costs.points({"routes": table}, HEADLINE, cost))) for cost in costs.COSTS
        },
        **({"stability": {"baseline": baseline, **stability.block(stable, 1 + len(again))}} if again else {}),
        **({"embedders": pairs} if (pairs := embedder_change.block(values, COMPARED)) else {}),
        "routes": table,
        "by_mode": _by_mode(values, modes, baseline, same),
    }


def _whole(labelled: LabelledSet, outcomes: Outcomes, routes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the values of rankings and answers, route -> question -> metric -> value."""
    names = list(routes)
    ranked = {route: route_values(labelled, outcomes, route) for route in names}
    written = scoring.measured(labelled, outcomes, names)
    return {
        route: {q: {**by.get(q, {}), **written[route].get(q, {})} for q in {**by, **written[route]}}
        for route, by in ranked.items()
    }


def check_baseline(baseline: str | None, routes: Sequence[str]) -> str:
    """Return the route to compare with. Raises BadInput if it is not among `routes`."""
    if baseline is not None and baseline not in routes:
        raise BadInput(f"baseline {baseline!r} is not among the routes: {', '.join(routes)}")
    return baseline or routes[0]


def _of_route(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Compute the figures that need no labels: time, failures and model use."""
    import numpy as np

    seen = list(outcomes)
    ok = [one.ms for one in seen if one.status == "ok" and not math.isnan(one.ms)]
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


def _by_mode(
    values: ByRoute, modes: Mapping[str, list[str]], baseline: str, same: Mapping[str, str]
) -> dict[str, Any]:
    """Compute two metrics for each kind of question. In each metric all kinds and routes are one family, in
    which equal routes count once.
    """
    within = {
        mode: {route: {q: by[q] for q in questions if q in by} for route, by in values.items()}
        for mode, questions in modes.items()
    }
    rows = means_of(
        {(mode, route): by for mode, some in within.items() for route, by in some.items()},
        MODE_METRICS,
        MODE_METRICS,
    )
    keys = [key for key in rows if key[1] != baseline]
    twins = {(mode, route): (mode, same[route]) for mode, route in keys if route in same}
    found = {
        name: distinct_family(
            {(mode, route): differences(within[mode], route, baseline, name) for mode, route in keys}, twins
        )
        for name in MODE_METRICS
    }
    for key in keys:
        rows[key]["vs_baseline"] = {name: by[key] for name, by in found.items() if key in by}
    return {mode: {route: rows[mode, route] for route in some} for mode, some in within.items()}
