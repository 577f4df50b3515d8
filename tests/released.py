"""Evaluations made by hand for the gate: every question has one relevant passage, found at a given rank."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.domain.types import Query
from core.evaluation import experiment_store, report, summary
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import Evaluation
from core.evaluation.outcome import Journal, Outcome, Outcomes
from core.evaluation.release.measured import Measured, of_evaluation
from core.evaluation.spec import Spec

MODES = ("plain", "hard")


def outcome(rank: int | None, *, ms: float = 10.0, calls: int = 0, tokens: int = 0, run: str = "") -> Outcome:
    """One whose relevant passage "gold" stands at `rank`, 1 or more; None: it is not found."""
    others = [f"other{n}" for n in range(10)]
    hits = others if rank is None else [*others[: rank - 1], "gold", *others[rank - 1 : 9]]
    scored = tuple((id, 1.0 - n / 20) for n, id in enumerate(hits))
    return Outcome("ok", ms, scored, calls, tokens, 0, run=run)


def failed(why: str = "it broke") -> Outcome:
    """One that did not end well."""
    return Outcome("failed", 0.0, error=why)


def labelled(count: int, *, texts: Sequence[str] = (), modes: Sequence[str | None] = MODES) -> LabelledSet:
    """`count` questions, the kinds one after the other; "gold" is relevant to each."""
    questions = tuple(
        Question(
            f"q{n}", Query(texts[n] if n < len(texts) else f"question {n}"), modes[n % len(modes)], "test"
        )
        for n in range(count)
    )
    return LabelledSet("tiny", questions, {one.id: {"gold": 1} for one in questions})


def evaluation(
    folder: Path,
    by_route: Mapping[str, Sequence[Outcome]],
    *,
    baseline: str | None = None,
    asked: LabelledSet | None = None,
    more: Mapping[str, Any] | None = None,
    alike: bool = False,
    corpus: str = "tiny",
) -> Evaluation:
    """Write an evaluation to `folder` as `eval --out` does, and open it. Routes find other passages than each
    other besides "gold", so that none are equal, unless they are `alike`.
    """
    count = len(next(iter(by_route.values())))
    found = asked or labelled(count)
    outcomes: Outcomes = {
        question.id: {route: by[n] if alike else _apart(by[n], route) for route, by in by_route.items()}
        for n, question in enumerate(found.questions)
    }
    with Journal.open(folder, {"corpus": corpus}) as journal:
        for question, by in outcomes.items():
            journal.add(question, by)
    experiment_store.write_labelled(folder, found, Spec(corpus, tuple(by_route)).document())
    figures = {
        **summary.summarise(found, outcomes, list(by_route), baseline=baseline),
        "corpus": corpus,
        "fingerprint": "f1" * 8,
        "split": "test",
        "sample": None,
        "timing": "shared",
        "answering": None,
        "interrupted": False,
        "warnings": [],
        **(more or {}),
    }
    report.write(folder, figures, found, outcomes)
    return experiment_store.opened(folder)


def _apart(one: Outcome, route: str) -> Outcome:
    hits = tuple((id if id == "gold" else f"{route}-{id}", score) for id, score in one.hits)
    return replace(one, hits=hits)


def figures_of(folder: Path) -> dict[str, Any]:
    """The content of its metrics.json."""
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return found


def of_ranks(
    folder: Path, ranks: Sequence[Any], route: str = "bm25", why: str = "it broke", **more: Any
) -> Evaluation:
    """An evaluation of one route that has the relevant passage at these ranks; "failed": it failed."""
    outcomes = [failed(why) if rank == "failed" else outcome(rank) for rank in ranks]
    return evaluation(folder, {route: outcomes}, **more)


def at_prices(made: Evaluation, *prices: float | None) -> Measured:
    """An evaluation as it was made at these prices."""
    rows = {name: {**row, "prices": list(prices)} for name, row in made.figures["routes"].items()}
    return of_evaluation(replace(made, figures={**made.figures, "routes": rows}))
