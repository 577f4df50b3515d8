"""The rule which labelled passages count as relevant."""

from __future__ import annotations

from collections.abc import Mapping

FULL = 2  # the grade from which a passage answers the question or a part of it


def floor(gold: Mapping[str, int]) -> int:
    """Return the lowest relevant grade: background (1) counts only if there is nothing better."""
    return min(FULL, max(1, *gold.values())) if gold else 1


def relevant(gold: Mapping[str, int]) -> list[str]:
    """Ids of the passages that count, best grade first."""
    least = floor(gold)
    return sorted((id for id, grade in gold.items() if grade >= least), key=lambda id: (-gold[id], id))
