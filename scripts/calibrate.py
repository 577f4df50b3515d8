"""Fit CRAG's thresholds on `support`: `python -m scripts.calibrate [DEV [TEST]] [--evaluator llm]`.

A question counts as positive when one of the passages that hybrid search puts first and the evaluator grades
is labelled relevant. The highest of the grades is the score. DEV and TEST are numbers of questions. The
printed thresholds go into data/evaluators/EVALUATOR.json; the test split tells what they are worth on
questions they were not fitted on. The lightweight evaluator gets its own from `scripts.evaluator`, by folds:
it has seen the dev questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from core.analysis.run_view import gradings
from core.backends.evaluators import Which
from core.domain import settings
from core.domain.errors import BadInput
from core.engine.engine import Engine
from core.engine.request import Request
from core.evaluation import sets
from core.evaluation.calibration import rate, tables, turned

ROUTE, STEP = "crag", "grade and decide"
SEED = 0  # as `python -m core eval --queries`


@dataclass(frozen=True, slots=True)
class Thresholds:
    """An upper and a lower threshold with what they do on the data they were fitted on.

    `precision` is the share of cases at or above `high` that are positive; `miss_precision` the share of
    cases below `low` that are negative. Either is None where no case falls there.
    """

    high: float
    low: float
    precision: float | None
    miss_precision: float | None
    n: int


def fit(
    scores: Sequence[float], positive: Sequence[bool], *, precision: float = 0.9, miss_precision: float = 0.8
) -> Thresholds:
    """The widest "sure" regions on both sides that keep the wanted precision.

    `high` is the lowest threshold at or above which at least `precision` of the cases are positive, `low`
    the highest below which at least `miss_precision` are negative and which does not pass `high`. Where the
    wanted precision cannot be had, `high` is 1 and `low` 0. Scores are from 0 to 1.
    """
    if len(scores) != len(positive) or not scores:
        raise BadInput(
            f"{len(scores)} scores and {len(positive)} labels; give the same number of both, at least one"
        )
    edges, counts = tables(scores, positive, "from")
    sure = edges[rate(counts, "precision") >= precision - 1e-12]
    high = min(1.0, float(sure[0])) if len(sure) else 1.0
    below = edges[(rate(turned(counts), "precision") >= miss_precision - 1e-12) & (edges <= high)]
    low = float(below[-1]) if len(below) else 0.0
    above = [label for score, label in zip(scores, positive, strict=True) if score >= high]
    missed = [not label for score, label in zip(scores, positive, strict=True) if score < low]
    return Thresholds(
        high,
        low,
        sum(above) / len(above) if above else None,
        sum(missed) / len(missed) if missed else None,
        len(scores),
    )


def grades(engine: Engine, split: str, count: int, evaluator: str) -> list[tuple[float, bool]]:
    """(highest grade, whether a relevant passage was among the graded) for each question of a split."""
    labels, _ = sets.tie(sets.read("support", None, split=split), engine.corpus("support"))
    cases = []
    for number, question in enumerate(labels.sample(count, SEED).questions, 1):
        parameters = {ROUTE: {"evaluator": evaluator}}
        result = engine.ask(Request(question.query, "support", (ROUTE,), parameters)).results[0]
        found = [one.output.grades for one in gradings(result) if one.span.name == STEP]
        if not found:
            sys.stderr.write(f"{question.id}: no grades: {result.error}\n")
            continue
        relevant = labels.qrels.get(question.id, {})
        there = any(relevant.get(one.id, 0) >= labels.relevant_from for one in found[0])
        best = max((one.grade for one in found[0] if one.grade is not None), default=0.0)
        cases.append((best, there))
        sys.stderr.write(f"{split} {number}: {question.id} {question.mode} best {best:.2f}, found {there}\n")
    return cases


def main() -> None:
    """Print thresholds fitted on dev, and what they do on test."""
    parser = argparse.ArgumentParser(description="Fit CRAG's thresholds on support.")
    parser.add_argument("dev", nargs="?", type=int, default=1000, help="dev questions to fit on")
    parser.add_argument("test", nargs="?", type=int, default=1000, help="test questions to check on")
    parser.add_argument("--evaluator", choices=get_args(Which), default="llm")
    given = parser.parse_args()
    engine = Engine(settings.load(route_timeout_s=600, llm_timeout_s=300, web_search="none"))
    dev = grades(engine, "dev", given.dev, given.evaluator)
    found = fit([score for score, _ in dev], [label for _, label in dev])
    fitted = {"high": found.high, "low": found.low, "precision": found.precision}
    fitted |= {"miss precision": found.miss_precision, "questions": found.n}
    sys.stdout.write(json.dumps({"dev": fitted}, indent=2) + "\n")
    test = grades(engine, "test", given.test, given.evaluator)
    above = [label for score, label in test if score >= found.high]
    below = [not label for score, label in test if score < found.low]
    held_out = {
        "questions": len(test),
        "at or above high": len(above),
        "of these relevant": sum(above) / len(above) if above else None,
        "below low": len(below),
        "of these not relevant": sum(below) / len(below) if below else None,
    }
    sys.stdout.write(json.dumps({"test": held_out}, indent=2) + "\n")


if __name__ == "__main__":
    main()
