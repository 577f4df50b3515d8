"""Harnesses by retrievers on labelled questions with equal budgets: how one searches, and what with."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from core.backends.embedder import NoVectors
from core.corpus import noise as noisy
from core.corpus.embeddings import Begin, gate
from core.domain.errors import BadInput, Cancelled, Unavailable
from core.domain.needs import Need
from core.engine.availability import missing
from core.evaluation import runner, scoring
from core.evaluation.statistics import mean_interval, unbounded_interval
from core.routes.registry import routes

if TYPE_CHECKING:
    from core.domain.types import AnswerStyle
    from core.engine.engine import Engine
    from core.evaluation.dataset import LabelledSet
    from core.evaluation.gaps import Progress
    from core.evaluation.outcome import Outcomes

ONE_SHOT = {"bm25": "bm25", "dense": "dense", "hybrid": "hybrid_auto", "grep": "grep"}
BY_WORDS = {"bm25", "grep"}  # of them, those that embed nothing
HARNESSES = {"one_shot": "", "iterative": "iterative", "agent": "read_files"}
MatrixCell = tuple[str, str, str, dict[str, Any]]  # harness, retriever, route and its parameters
LEVEL = "noise"  # key of a row: how many times as many passages were added
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
    found = {"tools": "grep"} if retriever == "grep" else {"tools": "search", "retriever": retriever}
    return "read_files", {**found, "chooser": "script" if scripted else "model", "keep": SEEN}


def measure(
    engine: Engine,
    labelled: LabelledSet,
    corpus: str,
    cells: Sequence[MatrixCell],
    *,
    style: AnswerStyle | None = None,
    noise: Sequence[int] = (),
    others: Sequence[str] = (),
    begin: Begin | None = None,
    progress: Progress = lambda _what, _done, _of: None,
    cancel: threading.Event | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each of `cells`, and again for each level of `noise`; see `core.api.matrix.matrix`.
    With `style` answers are written and measured.

    Raises BadInput and Unavailable if a level cannot be built, and Cancelled.
    """
    cancel, rows = cancel or threading.Event(), []
    if style is None:  # figures are those of labelled questions
        asked = tuple(one for one in labelled.questions if labelled.labelled(one.id))
        labelled = replace(labelled, questions=asked)
    how: dict[str, Any] = {"begin": begin or gate(engine.settings, confirmed=False)}
    how |= {"settings": engine.settings, "progress": progress, "cancel": cancel}
    for times in (0, *noise):
        within, name, lacking = engine, corpus, 0
        if times:
            base, added = engine.corpus(corpus), [engine.corpus(other) for other in others]
            lacking = noisy.lacking(base, added, times)
            by_words = {retriever for _, retriever, *_ in cells} <= BY_WORDS
            embedder = NoVectors() if by_words else engine.embedder_of(base)
            inside, made = noisy.build(base, added, times, embedder=embedder, **how)
            within, name = type(engine)(inside), made.name
        for harness, retriever, route, parameters in cells:
            plan = runner.Plan(name, (route,), {route: parameters}, "isolated", style)
            what = f"{harness} with {retriever}" + (f", {times} times the passages added" if times else "")
            report = partial(progress, what)
            outcomes, whole = runner.run(within, labelled, plan, ended=cancel.is_set, progress=report)
            if not whole:
                raise Cancelled("stopped by the user")
            row = {LEVEL: times, "generated": lacking, "harness": harness, "retriever": retriever}
            rows.append(row | {"route": route, **measured(labelled, outcomes, route, answers=bool(style))})
    return rows


def planned(
    engine: Engine, harnesses: Iterable[str], retrievers: Iterable[str], *, scripted: bool
) -> list[MatrixCell]:
    """Return harness, retriever, route and parameters of each cell. Raises BadInput for an unknown name, and
    Unavailable if agents need a language model that is not here.
    """
    retrievers = list(retrievers)
    cells = [(one, other, *cell(one, other, scripted)) for one in harnesses for other in retrievers]
    known = routes()
    if any(known[route].asks(known[route].settle(given)) for *_, route, given in cells):
        lack = missing(engine).get(Need.LLM)
        if lack:
            raise Unavailable(f"agents need a language model, or --scripted: {lack}")
    return cells


def measured(
    labelled: LabelledSet, outcomes: Outcomes, route: str, *, answers: bool = False
) -> dict[str, Any]:
    """Return the figures of one cell; see `core.api.matrix.matrix`."""
    recalls, complete, hops = list[float](), list[float](), dict[int, list[float]]()
    of = []
    for question in labelled.questions:
        if not labelled.labelled(question.id):
            continue
        outcome = outcomes[question.id][route]
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
        given = scoring.measured(labelled, outcomes, [route])[route].values()
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
