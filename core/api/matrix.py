"""Harnesses by retrievers on one labelled set with equal budgets: how one searches, and what with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.api.arguments import File
from core.api.evaluating import Evaluated, evaluate
from core.domain.errors import BadInput
from core.evaluation.statistics import interval

ONE_SHOT = {"bm25": "bm25", "dense": "dense", "hybrid": "hybrid_rrf", "grep": "grep"}
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
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Measure each of `harnesses` with each of `retrievers` on the labelled questions of `target`.

    Every harness sees SEEN passages of a question. Each row has, as mean and 95% interval, the recall of the
    labelled passages among those, the share of questions with all of them, model tokens and calls, steps and
    seconds; and the recall of the n-th labelled passage of questions that have several ("hops"). A question
    that failed has recall 0. Raises BadInput.
    """
    cells = [(harness, retriever) for harness in harnesses for retriever in retrievers]
    planned = [(*pair, *cell(*pair, scripted)) for pair in cells]
    rows = []
    for harness, retriever, route, parameters in planned:
        found = evaluate(
            target,
            [route],
            parameters={route: parameters},
            queries=queries,
            split=split,
            timing="isolated",
            progress=progress,
        )
        rows.append({"harness": harness, "retriever": retriever, "route": route} | _measured(found, route))
    return rows


def _measured(found: Evaluated, route: str) -> dict[str, Any]:
    labelled = found.labelled
    recalls, complete, hops = list[float](), list[float](), dict[int, list[float]]()
    of = []
    for question in labelled.questions:
        if not labelled.labelled(question.id):
            continue
        outcome = found.outcomes[question.id][route]
        of.append(outcome)
        grades = labelled.qrels[question.id]
        wanted = [id for id, grade in grades.items() if grade >= labelled.relevant_from]
        seen = {id for id, _ in labelled.ranking(question.id, outcome)[:SEEN]}
        held = [float(id in seen) for id in wanted]
        recalls.append(sum(held) / len(held))
        complete.append(float(all(held)))
        for number, one in enumerate(held if len(held) > 1 else (), 1):
            hops.setdefault(number, []).append(one)
    return {
        "questions": len(of),
        "failed": sum(one.status != "ok" for one in of),
        "recall": mean_of(recalls),
        "complete": mean_of(complete),
        "hops": [mean_of(values) for _, values in sorted(hops.items())],
        "tokens": mean_of([float(one.prompt_tokens + one.completion_tokens) for one in of]),
        "calls": mean_of([float(one.calls) for one in of]),
        "steps": mean_of([float(one.steps) for one in of]),
        "seconds": mean_of([one.ms / 1000 for one in of]),
    }


def mean_of(values: Sequence[float]) -> Mapping[str, Any]:
    """Return the mean of `values` with its 95% interval, or None for both without a value."""
    ends = interval(values) if values else None
    mean = sum(values) / len(values) if values else None
    return {
        "mean": mean,
        "low": ends[0] if ends else None,
        "high": ends[1] if ends else None,
        "n": len(values),
    }
