"""Harnesses by retrievers on one labelled set with equal budgets: how one searches, and what with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.api import arguments
from core.api.arguments import File
from core.corpus.embeddings import Begin
from core.engine.engine import shared_engine
from core.evaluation import sets
from core.evaluation.experiment import prepare
from core.evaluation.matrix import HARNESSES, ONE_SHOT, measure, planned
from core.evaluation.spec import Spec


def matrix(
    target: File,
    harnesses: Sequence[str] = tuple(HARNESSES),
    retrievers: Sequence[str] = tuple(ONE_SHOT),
    *,
    queries: int | None = None,
    scripted: bool = False,
    split: str = "test",
    answers: bool = False,
    noise: Sequence[int] = (),
    noise_from: Sequence[str] = (),
    begin: Begin | None = None,
    progress: arguments.Progress | bool = True,
) -> list[dict[str, Any]]:
    """Measure each of `harnesses` with each of `retrievers` on the labelled questions of `target`.

    Every harness sees SEEN passages of a question. Each row has `n`, the labelled questions, `failed` with
    the first `error`, and as {mean, ci95, n}: the `recall` of labelled passages among those seen; `complete`,
    the share of questions with all of them; `per_hop`, the recall of the first, second ... labelled passage
    of questions with several; tokens, calls, steps and seconds. With `answers` also `correct` and `supported`
    (see core.evaluation.answers). A question that failed has recall 0.

    With `noise` everything is measured again with that many times as many unrelated passages added, those of
    the indexed corpora `noise_from` and then generated ones: `noise` of a row is 0 for the corpus as it is,
    `generated` counts passages. `begin` gets the cost of embedding these; by default it rejects one above the
    limits of the settings. Raises BadInput (NotConfirmed), and Unavailable if agents need a language model
    that is not here.
    """
    engine = shared_engine()
    cells = planned(engine, harnesses, retrievers, scripted=scripted)
    origin = arguments.source(target, None, engine.settings, known=False)
    spec = Spec(origin.name, ("grep",), split=split, queries=queries, answers=answers)
    found = sets.of_spec(spec, origin.path)
    with arguments.reporting(progress) as report:
        arguments.ensure(origin, engine.settings, report)
        ready = prepare(engine, spec, found)
        how: dict[str, Any] = {"noise": noise, "others": noise_from, "begin": begin, "progress": report}
        return measure(engine, ready.labelled, origin.name, cells, style=ready.plan.style, **how)
