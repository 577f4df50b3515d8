"""Notes on figures that rest on generated questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.evaluation.dataset import Question


def counts(questions: Iterable[Question]) -> tuple[int, int, int]:
    """Return how many questions there are, how many a model wrote, and how many of those a person
    accepted.
    """
    asked = list(questions)
    made = [question.generated for question in asked if question.generated is not None]
    return len(asked), len(made), sum(one.state == "accepted" for one in made)


def block(questions: Iterable[Question]) -> dict[str, Any]:
    """Return the provenance for the figures; {} if a person wrote every question."""
    asked = list(questions)
    whole, made, accepted = counts(asked)
    if not made:
        return {}
    return {"questions": whole, "written": made, "accepted": accepted, "note": note(asked)}


def note(questions: Iterable[Question]) -> str:
    """Return the note that precedes all figures of generated questions, or "" if no question is generated."""
    asked = list(questions)
    whole, made, accepted = counts(asked)
    if not made:
        return ""
    models = sorted({one.generated.by for one in asked if one.generated is not None})
    what = "All" if made == whole else f"{made} of"
    reviewed = "all of them" if accepted == made else f"{accepted} of them" if accepted else "none of them"
    return (
        f"{what} {whole} questions were written by {', '.join(models)}, with their labels; people have"
        f" accepted {reviewed}."
    )
