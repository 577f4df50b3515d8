"""What thresholds decide over many questions, in words."""

from __future__ import annotations

from core.analysis.what_if.grading import Tally


def in_words(one: Tally, count: int) -> str:
    """One tally: what was decided, how often that was right, and what it cost."""
    if not count:
        return "No question counts here."
    parts = [
        f"With the stored thresholds {one.counts['correct']} of {count} questions are decided correct,"
        f" {one.counts['ambiguous']} ambiguous, {one.counts['incorrect']} incorrect."
    ]
    if one.precision is not None:
        parts.append(
            f"Of those decided correct {one.right} ({one.precision:.0%}) have a relevant passage among those"
            " graded."
        )
    if one.lost is not None:
        parts.append(
            f"Of the {one.present} questions with a relevant passage {one.discarded} ({one.lost:.0%}) are"
            " discarded wrongly."
        )
    return " ".join(parts)


def changed(before: Tally, after: Tally) -> str:
    """What moved from one tally to another over the same questions."""
    moved = [
        f"{after.counts[action] - before.counts[action]:+d} {action}"
        for action in before.counts
        if after.counts[action] != before.counts[action]
    ]
    if not moved:
        return "The thresholds tried decide every question as the stored ones do."
    discards = after.discarded - before.discarded
    return (
        f"The thresholds tried: {', '.join(moved)}; precision {_share(before.precision)} →"
        f" {_share(after.precision)}, recall {_share(before.recall)} → {_share(after.recall)}, wrong discards"
        f" {discards:+d}."
    )


def _share(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
