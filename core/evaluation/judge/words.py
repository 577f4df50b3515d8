"""A judge's record in sentences: how far it agrees, what that leaves open, and what it may be used for."""

from __future__ import annotations

from core.domain.program import COMMAND
from core.evaluation.judge.record import ENOUGH, JudgeRecord, out_of_date
from core.evaluation.kappa import Kappa
from core.evaluation.labels.bands import landis_koch


def agreement(record: JudgeRecord) -> str:
    """Return kappa with its interval, and the number of passages."""
    held = record.held_out
    on = (
        f"On {held.pairs} held-out passages of {len(held.questions)} questions, {held.relevant} of them "
        "relevant, Cohen's kappa of judge and people is"
    )
    if record.binary.value is None:
        return f"{on} not defined: both gave one grade alone."
    auc = "" if record.auc is None else f" AUC: {record.auc:.2f}."
    return (
        f"{on} {in_brackets(record.binary)} ({landis_koch(record.binary.value)}); over the grades, weighted "
        f"by squared distance, {in_brackets(record.quadratic)}.{auc}"
    )


def leaves_open(record: JudgeRecord) -> str:
    """Return sentences on how often the judge is wrong either way, and whether chance is ruled out."""
    (right_no, wrong_yes), (wrong_no, right_yes) = record.two_by_two
    said = [
        f"The judge misses {wrong_no} of {wrong_no + right_yes} relevant passages and calls {wrong_yes} of "
        f"{right_no + wrong_yes} others relevant."
    ]
    if wrong_yes + right_yes:
        said.append(f"Of the {wrong_yes + right_yes} it calls relevant, people agree on {right_yes}.")
    if record.binary.ci95 is None:
        said.append("There are too few passages for an interval.")
    elif record.binary.ci95[0] <= 0:
        said.append("The interval contains 0: the judge may agree no better than chance.")
    if record.unscored:
        said.append(f"The model gave no score for {record.unscored} passages, which count nowhere.")
    if record.negatives != "graded":
        said.append(
            "Nobody graded a passage as not relevant: the others are passages of questions that the "
            "documents do not answer, which a judge may tell by the question alone."
        )
    return " ".join(said)


def use(record: JudgeRecord) -> str:
    """Describe the allowed use of the judge."""
    if not record.shown:
        return f"It may not grade unjudged passages: {refusal(record)}."
    return f"It may grade unjudged passages (eval --judge): the interval lies above {ENOUGH:g}."


def refusal(record: JudgeRecord) -> str:
    """Return why agreement is not shown."""
    if record.negatives != "graded":
        return "it was not held against passages that people graded as not relevant"
    if record.binary.ci95 is None:
        return "its kappa has no interval"
    low = record.binary.ci95[0]
    return (
        f"the lower end of the interval of kappa is {low:.2f}; it must be above {ENOUGH:g}, where "
        "moderate agreement begins"
    )


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


def in_brackets(kappa: Kappa) -> str:
    """Return a kappa with its interval."""
    if kappa.value is None:
        return "not defined"
    ends = "" if kappa.ci95 is None else f" [{kappa.ci95[0]:.2f}, {kappa.ci95[1]:.2f}]"
    return f"{kappa.value:.2f}{ends}"
