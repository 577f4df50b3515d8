"""Results with scores held against thresholds, and an evaluation of them on the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from core.domain.outputs import Decision, Grading, PassageGrade, Written
from core.domain.types import Query, RouteResult, Run, Span
from core.evaluation.dataset import LabelledSet, Question
from core.evaluation.experiment_store import RUNS, write_labelled
from core.evaluation.outcome import Journal, Outcome
from core.store import Store

LOW, HIGH = 0.2, 0.5


def result(route: str, *spans: Span, **parameters: Any) -> RouteResult:
    """A route that did only this."""
    return RouteResult(route, route, "ok", 1.0, spans=spans, parameters=parameters)


def graded(
    grades: Mapping[str, float | None],
    low: float = LOW,
    high: float = HIGH,
    id: int = 1,
    set_by: Mapping[str, str] | None = None,
) -> Span:
    """A step that grades passages and decides by the best grade."""
    known = [one for one in grades.values() if one is not None]
    best = max(known, default=-1)
    decision = "correct" if best >= high else "ambiguous" if best >= low else "incorrect"
    output = Grading(
        tuple(PassageGrade(name, one, "scored") for name, one in grades.items()),
        low,
        high,
        decision,
        "",
        ("correct", "ambiguous", "incorrect"),
        "lightweight",
    )
    args = {"low": low, "high": high}
    return Span(id, None, "grade and decide", "EVALUATOR", 0, 1, args, output, set_by=set_by or {})


def evidence(score: float, shown: Sequence[str], threshold: float = 0.58, id: int = 5) -> tuple[Span, Span]:
    """A step that writes an answer, and in it the one that asks whether the passages hold it."""
    ways = ("answer", "abstain")
    output = Decision(ways[score < threshold], ways, "", score, threshold)
    args = {"threshold": threshold}
    return (
        Span(id, None, "write answer", "LLM", 0, 1, {}, Written("text", shown=tuple(shown))),
        Span(id + 1, id, "is the answer in the passages", "EVALUATOR", 0, 1, args, output),
    )


def asked(count: int = 40, splits: Sequence[str] = ("dev", "test")) -> LabelledSet:
    """Questions of two splits in turn; each has one relevant passage, "pN"."""
    questions = tuple(
        Question(f"q{n}", Query(f"question {n}?"), split=splits[n % len(splits)]) for n in range(count)
    )
    return LabelledSet("tiny", questions, {f"q{n}": {f"p{n}": 2} for n in range(count)}, 2)


def crag(n: int, name: str = "crag") -> RouteResult:
    """Question n: the relevant passage is among those graded from n = 16 on, where grades are above .6."""
    found = f"p{n}" if n >= 16 else f"x{n}"
    grading = graded({found: (n + 20) / 60, "y": 0.01}, set_by={"low": "low", "high": "high"})
    return result(
        name, grading, *evidence((n + 10) / 60, [found]), evaluator="lightweight", high=0.0, low=0.0
    )


def kept(folder: Path, labelled: LabelledSet, results: Mapping[str, Sequence[RouteResult]]) -> None:
    """Write an evaluation with its runs to `folder`; questions without results have not been asked yet."""
    folder.mkdir(parents=True)
    write_labelled(folder, labelled, {"corpus": "tiny", "split": "all", "parameters": {}})
    with Journal.open(folder, {}) as journal, closing(Store(folder / RUNS)) as store:
        for question in (one for one in labelled.questions if one.id in results):
            run = Run(
                f"run-{question.id}",
                "2026-11-20T10:15:30+00:00",
                question.query,
                "tiny",
                "f",
                {},
                tuple(results[question.id]),
            )
            store.save(run)
            journal.add(question.id, {r.route: Outcome("ok", 1.0, run=run.id) for r in run.results})
        assert store.flush()
