"""The `gate` command that holds routes against given criteria, to copy into a build."""

from __future__ import annotations

from shlex import join

from core.evaluation.release.criteria import Criteria
from core.evaluation.verdict import MARGIN

_OPTIONS = {
    "minimum": "--min-quality",
    "max_p95_ms": "--max-p95-ms",
    "max_cost": "--max-cost",
    "max_tokens": "--max-tokens",
    "max_calls": "--max-calls",
    "max_failed": "--max-failed",
    "max_unjudged": "--max-unjudged",
    "min_questions": "--min-questions",
    "min_effect": "--min-effect",
}


def command(name: str, criteria: Criteria, *, against: str | None = None, report: str | None = None) -> str:
    """One line for a shell; the share that may fail is 1 where none is asked for."""
    words = ["python", "-m", "core", "gate", name, "--metric", criteria.metric]
    for field, option in _OPTIONS.items():
        value = getattr(criteria, field)
        value = 1 if value is None and field == "max_failed" else value
        if value is not None:
            words += [option, f"{value:.10g}"]
    words += [] if criteria.margin == MARGIN else ["--margin", f"{criteria.margin:.10g}"]
    words += [] if criteria.no_loss else ["--allow-loss"]
    words += [] if criteria.cheaper else ["--best"]
    words += ["--allow-unlike-machines"] if criteria.unlike_machines else []
    words += ["--against", against] if against else []
    words += ["--report", report] if report else []
    return join(words)
