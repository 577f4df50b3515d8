"""A judge's record in sentences: how far it agrees, what that leaves open, and what it may be used for."""

from __future__ import annotations

from core.domain.program import COMMAND
from core.evaluation.judge.record import ENOUGH, JudgeRecord, out_of_date
from core.evaluation.labels.agreement import landis_koch
from core.evaluation.templating import say, sentences


def agreement(record: JudgeRecord) -> str:
    """Return kappa with its interval, and the number of passages."""
    return say("judge.agreement", record, landis_koch)


def leaves_open(record: JudgeRecord) -> str:
    """Return sentences on how often the judge is wrong either way, and whether chance is ruled out."""
    return " ".join(sentences("judge.leaves_open", record))


def use(record: JudgeRecord) -> str:
    """Describe the allowed use of the judge."""
    if not record.shown:
        return f"It may not grade unjudged passages: {refusal(record)}."
    return f"It may grade unjudged passages (eval --judge): the interval lies above {ENOUGH:g}."


def refusal(record: JudgeRecord) -> str:
    """Return why agreement is not shown."""
    return say("judge.refusal", record, ENOUGH)


def not_calibrated(record: JudgeRecord | None, model: str, policy: str, name: str) -> str | None:
    """Return why this judge has no valid record, with the command that measures it, or None if it has one."""
    why = "its agreement with people was never measured"
    if record is not None:
        found = out_of_date(record, model, policy)
        if found is None:
            return None
        why = found
    return (
        f"the judge {model} is not calibrated for these guidelines: {why}; "
        f"run: {COMMAND} labels judge '{name}'"
    )
