"""Notes on figures that rest on generated questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.evaluation.dataset import Question


def block(questions: Iterable[Question]) -> dict[str, Any]:
    """Return the provenance for the figures; {} if a person wrote every question."""
    asked = list(questions)
    made = [question.generated for question in asked if question.generated is not None]
    if not made:
        return {}
    accepted = sum(one.state == "accepted" for one in made)
    what = "All" if len(made) == len(asked) else f"{len(made)} of"
    reviewed = f"{'all' if accepted == len(made) else accepted or 'none'} of them"
    note = (
        f"{what} {len(asked)} questions were written by {', '.join(sorted({one.by for one in made}))}, with"
        f" their labels; people have accepted {reviewed}."
    )
    return {"questions": len(asked), "written": len(made), "accepted": accepted, "note": note}


def note(questions: Iterable[Question]) -> str:
    """Return the note that precedes all figures of generated questions, or "" if no question is generated."""
    return str(block(questions).get("note", ""))
