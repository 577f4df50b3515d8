"""Prompts that have a model compare several passages at once."""

from __future__ import annotations

from core.backends.prompting.prompts import Prompt
from core.backends.prompting.untrusted import GROUNDED

LISTWISE = Prompt(
    "listwise/1",
    f"You order passages by how well they answer a question. {GROUNDED} Reply with their numbers alone, the "
    "best first, as in: 2 > 3 > 1",
    "{passages}\n\nQuestion: {question}\n\nAll numbers from 1 to {n}, the best passage first:",
)
SETWISE = Prompt(
    "setwise/1",
    f"You choose the passage that answers a question best. {GROUNDED} Reply with its letter alone.",
    "{passages}\n\nQuestion: {question}\n\nThe letter of the best passage:",
)
