"""Fit CRAG's thresholds on `support`: `python -m scripts.calibrate [dev questions [test questions]]`.

A question counts as positive when one of the passages that hybrid search puts first and the model grades is
labelled relevant. The highest of the grades is the score. The printed thresholds are `crag`'s defaults; the
test split tells what they are worth on questions they were not fitted on.
"""

from __future__ import annotations

import json
import sys

from core import settings
from core.engine import Engine, Request
from core.evaluate import sets
from core.evaluate.calibration import fit

ROUTE, STEP = "crag", "grade and decide"
SEED = 0  # as `python -m core eval --queries`


def grades(engine: Engine, split: str, count: int) -> list[tuple[float, bool]]:
    """(highest grade, whether a relevant passage was among the graded) for each question of a split."""
    labels, _ = sets.tie(sets.read("support", None, split=split), engine.corpus("support"))
    cases = []
    for number, question in enumerate(labels.sample(count, SEED).questions, 1):
        result = engine.ask(Request(question.query, "support", (ROUTE,))).results[0]
        verdict = next((s.output for s in result.spans if s.name == STEP and s.output), None)
        if verdict is None:
            sys.stderr.write(f"{question.id}: no grades: {result.error}\n")
            continue
        relevant = labels.qrels.get(question.id, {})
        found = any(relevant.get(g["id"], 0) >= labels.relevant_from for g in verdict["grades"])
        best = max((g["grade"] for g in verdict["grades"] if g["grade"] is not None), default=0.0)
        cases.append((best, found))
        sys.stderr.write(f"{split} {number}: {question.id} {question.mode} best {best:.2f}, found {found}\n")
    return cases


def main() -> None:
    """Print thresholds fitted on dev, and what they do on test."""
    count, held_out_count = (int(text) for text in (*sys.argv[1:], "1000", "1000")[:2])
    engine = Engine(settings.load(route_timeout_s=600, llm_timeout_s=300))
    dev = grades(engine, "dev", count)
    found = fit([score for score, _ in dev], [label for _, label in dev])
    fitted = {"high": found.high, "low": found.low, "precision": found.precision}
    fitted |= {"miss precision": found.miss_precision, "questions": found.n}
    sys.stdout.write(json.dumps({"dev": fitted}, indent=2) + "\n")
    test = grades(engine, "test", held_out_count)
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
