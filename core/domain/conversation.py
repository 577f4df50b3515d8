"""The turns of a conversation, read from JSON."""

from __future__ import annotations

from typing import Any

from core.domain.errors import BadInput
from core.domain.types import Turn


def turns(items: Any, where: str) -> tuple[Turn, ...]:
    """Read a conversation from a list of {"role", "text"}, oldest first. Raises BadInput for another
    shape.
    """
    if not isinstance(items, list):
        raise BadInput(f"{where}: a history is a list of {{'role', 'text'}}, not {type(items).__name__}")
    history = []
    for item in items:
        role = item.get("role") if isinstance(item, dict) else None
        if role not in ("user", "assistant") or not isinstance(item.get("text"), str):
            raise BadInput(
                f"{where}: a turn is {{'role': 'user' or 'assistant', 'text': ...}}, not {item!r}"[:300]
            )
        history.append(Turn(role, item["text"]))
    return tuple(history)
