"""Harnesses by retrievers on one labelled set with equal budgets: how one searches, and what with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.api.arguments import File
from core.api.evaluating import Evaluated, evaluate
from core.domain.errors import BadInput, Unavailable
from core.domain.needs import Need
from core.engine.availability import missing
from core.engine.engine import shared_engine
from core.evaluation import scoring
from core.evaluation.statistics import mean_interval, unbounded_interval
from core.routes.registry import routes

ONE_SHOT = {"bm25": "bm25", "dense": "dense", "hybrid": "hybrid_auto", "grep": "grep"}
HARNESSES = {"one_shot": "", "iterative": "iterative", "agent": "read_files"}
SEEN = 9  # passages that a harness may see of each question


def cell(harness: str, retriever: str, scripted: bool) -> tuple[str, dict[str, Any]]:
    """Return the route of a cell with its parameters; `scripted` agents ask no model. Raises BadInput."""
    for given, known in ((harness, HARNESSES), (retriever, ONE_SHOT)):
        if given not in known:
            raise BadInput(f"{given!r} is not one of {', '.join(known)}")
    if harness == "one_shot":
        return ONE_SHOT[retriever], {}
    if harness == "iterative":
        return "iterative", {"retriever": retriever, "keep": SEEN}
    chooser = "script" if scripted else "model"
    if retriever == "grep":
        return "read_files", {"tools": "grep", "chooser": chooser, "keep": SEEN}
    return "read_files", {"tools": "search", "retriever": retriever, "chooser": chooser, "keep": SEEN}


def matrix(
    target: File,
    harnesses: Sequence[str] = tuple(HARNESSES),
    retrievers: Sequence[str] = tuple(ONE_SHOT),
    *,
    queries: int | None = None,
    scripted: bool = False,
    split: str = "test",
    answers: bool = False,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Measure each of `harnesses` with each of `retrievers` on the labelled questions of `target`.

    Every harness sees SEEN passages of a question. Each row has `n`, the labelled questions, `failed` with
    the first `error`, and as {mean, ci95, n}: the `recall` of labelled passages among those seen; `complete`,
    the share of questions with all of them; `per_hop`, the recall of the first, second ... labelled passage
    of questions with several; tokens, calls, steps and seconds. With `answers` also `correct` and `supported`
    (see core.evaluation.answers). A question that failed has recall 0. Raises BadInput, and Unavailable if
    agents need a language model that is not here.
    """
    cells = [(harness, retriever) for harness in harnesses for retriever in retrievers]
    planned = [(*pair, *cell(*pair, scripted)) for pair in cells]
    known = routes()
    if any(known[route].asks(known[route].settle(given)) for *_, route, given in planned):
        lack = missing(shared_engine()).get(Need.LLM)
        if lack:
            raise Unavailable(f"agents need a language model, or --scripted: {lack}")
    rows = []
    for harness, retriever, route, parameters in planned:
        found = evaluate(
            target,
            [route],
            parameters={route: parameters},
            queries=queries,
            split=split,
            timing="isolated",
            answers=answers,
            progress=progress,
        )
        rows.append(
            {"harness": harness, "retriever": retriever, "route": route} | _measured(found, route, answers)
        )
    return rows


def _measured(found: Evaluated, route: str, answers: bool) -> dict[str, Any]:
    labelled = found.labelled
    recalls, complete, hops = list[float](), list[float](), dict[int, list[float]]()
    of = []
    for question in labelled.questions:
        if not labelled.labelled(question.id):
            continue
        outcome = found.outcomes[question.id][route]
        of.append(outcome)
        grades = labelled.judged(question.id)
        wanted = [id for id, grade in grades.items() if grade >= labelled.relevant_from]
        hits = outcome.hits[:SEEN] if outcome.status == "ok" else ()
        seen = {id for id, _ in labelled.ranking(question.id, replace(outcome, hits=hits))}
        held = [float(id in seen) for id in wanted]
        recalls.append(sum(held) / len(held))
        complete.append(float(all(held)))
        for number, one in enumerate(held if len(held) > 1 else (), 1):
            hops.setdefault(number, []).append(one)
    row = {
        "n": len(of),
        "failed": sum(one.status != "ok" for one in of),
        "error": next((one.error for one in of if one.status != "ok"), None),
        "recall": share_of(recalls),
        "complete": share_of(complete),
        "per_hop": [share_of(values) for _, values in sorted(hops.items())],
        "tokens": mean_of([one.prompt_tokens + one.completion_tokens for one in of]),
        "calls": mean_of([one.calls for one in of]),
        "steps": mean_of([one.steps for one in of]),
        "seconds": mean_of([one.ms / 1000 for one in of]),
    }
    if answers:
        given = scoring.measured(labelled, found.outcomes, [route])[route].values()
        for name, metric in (("correct", "correct"), ("supported", "supported_accuracy")):
            row[name] = share_of([value for one in given if (value := one[metric]) is not None])
    return row


def share_of(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean of values between 0 and 1 with its 95% interval; None for both without a value."""
    return {**mean_of(values), "ci95": mean_interval(values) if values else None}


def mean_of(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean of `values` with its 95% interval; None without a value, and without two."""
    mean = sum(values) / len(values) if values else None
    return {"mean": mean, "ci95": unbounded_interval(values), "n": len(values)}
