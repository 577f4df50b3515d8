"""Turns the outcomes of an evaluation into the figures of `metrics.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import fmean
from typing import Any, get_args

import numpy as np
from pydantic_core import to_jsonable_python

from core.analysis.metrics import ANSWERS, COMPARED, HEADLINE, METRICS, QUALITY, UNJUDGED, measures
from core.analysis.token_usage import PRICES, Prices
from core.backends import question_classifier
from core.domain import settings
from core.domain.errors import BadInput, Unavailable
from core.domain.types import Status
from core.evaluation import comparison, embedder_change, oracle, scoring, statistics, verdict
from core.evaluation.answers import EXPLAINED, JUDGED_BY
from core.evaluation.comparison import (
    EVERY,
    SAME,
    ByRoute,
    column,
    compared,
    differences,
    distinct_family,
    means_of,
    paired,
)
from core.evaluation.dataset import LabelledSet
from core.evaluation.outcome import Outcomes
from core.evaluation.questions import question_file
from core.evaluation.scoring import route_values

MODE_METRICS = ("ndcg@10", "recall@10")


def summarise(
    labelled: LabelledSet,
    outcomes: Outcomes,
    routes: Sequence[str],
    *,
    baseline: str | None = None,
    extra: ByRoute | None = None,
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

    def whole(of: Outcomes) -> ByRoute:
        names = list(dict.fromkeys(route for by in of.values() for route in by))
        written, found = scoring.measured(labelled, of, names), {}
        for route in names:
            ranked, answered = route_values(labelled, of, route), written[route]
            found[route] = {q: {**ranked.get(q, {}), **answered.get(q, {})} for q in {**ranked, **answered}}
        return found

    asked = [q for q in labelled.questions if q.id in outcomes]
    modes = {mode: [q.id for q in asked if q.mode == mode] for mode in sorted({q.mode or "" for q in asked})}
    modes.pop("", None)  # of the questions without a mode
    equal = comparison.equal_routes(outcomes, routes)
    same = comparison.standing_for(equal, baseline)
    table = compared(values, baseline, METRICS, COMPARED, QUALITY, same)
    by_question: dict[str, dict[str, float]] = {}
    for route, by in values.items():
        for question, measured in by.items():
            by_question.setdefault(question, {})[route] = measured[HEADLINE]
    written = scoring.blocks(labelled, outcomes, routes, baseline, same)
    names = list(dict.fromkeys(name for by in (extra or {}).values() for row in by.values() for name in row))
    more = compared(extra, baseline, names, names, names, same) if extra else {}
    for route, row in table.items():
        mine = {q: by[route] for q, by in outcomes.items() if route in by}
        every, ended = list(mine.values()), [q for q, one in mine.items() if one.status == "ok"]
        times = [mine[q].ms for q in ended if not math.isnan(mine[q].ms)]
        p50, p95 = np.percentile(times, [50, 95]).tolist() if times else (None, None)
        row |= {
            "p50_ms": p50,
            "p95_ms": p95,
            "failed": len(every) - len(ended),
            "statuses": {status: sum(one.status == status for one in every) for status in get_args(Status)},
            "errors": sorted({one.error for one in every if one.error})[:5],
            "llm_calls": sum(one.calls for one in every),
            "prompt_tokens": sum(one.prompt_tokens for one in every),
            "completion_tokens": sum(one.completion_tokens for one in every),
            "scored": row["n"],
            "not_scored": sum(q not in labels for q in ended),
        }
        if prices:
            row[PRICES] = list(prices[route])
        if route in written:
            row |= {"answers": written[route], "supported_accuracy": written[route]["supported_accuracy"]}
        if route in more:
            row["extra"] = more[route]
        if chosen := {q: one.said["class"] for q, one in mine.items() if "class" in one.said}:
            kinds = {q.id: q.mode for q in asked}
            row["routing"] = oracle.routing(chosen, kinds, by_question, route, HEADLINE)
            made: Mapping[str, Any] = {}
            with suppress(Unavailable):  # a router without a training record
                made = question_classifier.read(settings.current().home).made
            if (seen := oracle.seen_in_training(labelled.name, made)) is not None:
                row["routing"]["trained_on"] = seen
        if route in same:
            row["same_as"] = same[route]
    against = {r: row["vs_baseline"] for r, row in table.items() if r != baseline and r not in same}
    distinct = {route: by for route, by in values.items() if route not in same}
    decision = verdict.plain(
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
        "statistics": {**EXPLAINED["statistics"], "alpha": statistics.ALPHA},
        **({"answers": JUDGED_BY} if written else {}),
        "equal": to_jsonable_python(equal),
        "decision": {"metric": HEADLINE, **decision.document()},
        "detectable": {name: comparison.smallest(against, name) for name in COMPARED},
        "oracle": oracle.oracle(distinct, HEADLINE),
        **({"stability": stability([*map(whole, (outcomes, *again))], baseline)} if again else {}),
        **({"embedders": pairs} if (pairs := embedder_change.block(values, COMPARED)) else {}),
        "routes": table,
        "by_mode": _by_mode(values, modes, baseline, same),
    }


def stability(rounds: Sequence[ByRoute], baseline: str) -> dict[str, Any]:
    """Return how much the figures vary over `rounds`, two or more, of routes that were asked again; the first
    has all routes.

    By route and metric, over the "n" questions scored in every round: the "means" of the rounds, their sample
    standard deviation "sd", and the share of questions that "changed". "deltas": the mean difference from the
    baseline in each round, over the "paired" questions that both were scored on throughout; a baseline that
    was not asked again stands with its only values. "varies": the largest of them minus the smallest;
    "larger": whether each is larger than that, so that all have one sign.
    """
    routes: dict[str, dict[str, Any]] = {}
    for route in (one for one in rounds[0] if all(one in later for later in rounds[1:])):
        theirs = [one.get(baseline, rounds[0].get(baseline, {})) for one in rounds]
        for metric in (*COMPARED, *ANSWERS):
            mine = [column(one[route], metric) for one in rounds]
            if not (asked := [q for q in mine[0] if all(q in one for one in mine)]):
                continue
            table = np.array([[one[q] for q in asked] for one in mine])
            apart = [paired(own, column(by, metric)) for own, by in zip(mine, theirs, strict=True)]
            both = [q for q in apart[0] if all(q in one for one in apart)] if route != baseline else []
            deltas = [fmean(one[q] for q in both) for one in apart] if both else []
            varies = max(deltas) - min(deltas) if deltas else None
            routes.setdefault(route, {})[metric] = {
                "n": len(asked),
                "means": table.mean(axis=1).tolist(),
                "sd": float(table.mean(axis=1).std(ddof=1)),
                "changed": float((np.ptp(table, axis=0) > SAME).mean()),
                "paired": len(both),
                "deltas": deltas,
                "varies": varies,
                "larger": None if varies is None else min(map(abs, deltas)) > varies,
            }
    return {"rounds": len(rounds), "baseline": baseline, "routes": routes}


def check_baseline(baseline: str | None, routes: Sequence[str]) -> str:
    """Return the route to compare with. Raises BadInput if it is not among `routes`."""
    if baseline is not None and baseline not in routes:
        raise BadInput(f"baseline {baseline!r} is not among the routes: {', '.join(routes)}")
    return baseline or routes[0]


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
