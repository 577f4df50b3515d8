"""The effect of thresholds on decisions over many questions, in words."""

from __future__ import annotations

from core.analysis.what_if.grading import Tally


def in_words(one: Tally, count: int) -> str:
    """One tally: what was decided, how often that was right, and what it cost."""
    if not count:
        return "There are no questions to count."
    parts = [
        f"The stored thresholds decide {one.counts['correct']} of {count} questions as correct,"
        f" {one.counts['ambiguous']} as ambiguous and {one.counts['incorrect']} as incorrect."
    ]
    if one.precision is not None:
        parts.append(
            f"Of those decided correct, {one.right} ({one.precision:.0%}) have a relevant graded passage."
        )
    if one.lost is not None:
        parts.append(
            f"Of the {one.present} questions with a relevant passage, {one.discarded} ({one.lost:.0%}) are"
            " wrongly discarded."
        )
    return " ".join(parts)


def changed(before: Tally, after: Tally) -> str:
    """Return the change from one tally to another over the same questions."""
    moved = [
        f"{after.counts[action] - before.counts[action]:+d} {action}"
        for action in before.counts
        if after.counts[action] != before.counts[action]
    ]
    if not moved:
        return "The new thresholds decide every question like the stored ones."
    discards = after.discarded - before.discarded
    return (
        f"With the new thresholds: {', '.join(moved)}; precision {_share(before.precision)} →"
        f" {_share(after.precision)}, recall {_share(before.recall)} → {_share(after.recall)}, wrong discards"
        f" {discards:+d}."
    )


def _share(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
