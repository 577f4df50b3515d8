"""Harnesses by retrievers on one labelled set with equal budgets: how one searches, and what with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.api.arguments import File
from core.api.evaluating import evaluate
from core.engine.engine import shared_engine
from core.evaluation.matrix import HARNESSES, ONE_SHOT, measured, planned


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
    rows = []
    for harness, retriever, route, parameters in planned(
        shared_engine(), harnesses, retrievers, scripted=scripted
    ):
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
        figures = measured(found.labelled, found.outcomes, route, answers=answers)
        rows.append({"harness": harness, "retriever": retriever, "route": route, **figures})
    return rows
