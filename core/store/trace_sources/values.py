"""Values of records: fields under several names, texts, and what people and judges said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.store.trace_sources.documents import parsed_text

FEEDBACK = "feedback"  # the attribute that has what was said of a span, a list
_SIDES = {
    "input": "input.value",
    "output": "output.value",
    "inputs": "input.value",
    "outputs": "output.value",
}


def either(record: Mapping[str, Any], *names: str) -> Any:
    """Return the first of these fields that is there and not null."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def opened(value: Any) -> Any:
    """Return the value of a text that is JSON; any other as it is."""
    if not isinstance(value, str):
        return value
    found = parsed_text(value)
    return value if found is None else found


def sides(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's input and output as attributes."""
    found: dict[str, Any] = {}
    for name, attribute in _SIDES.items():
        if record.get(name) is not None:
            value = opened(record[name])
            found[attribute] = (
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            )
    return found


def feedback_of(
    source: str, name: Any, value: Any, label: Any = None, note: Any = None, who: Any = None
) -> dict[str, Any]:
    """Return what a person or a judge said of a span: a score, a label or both, with where it is from."""
    if isinstance(value, str):
        label, value = (label or value), None
    number = float(value) if isinstance(value, int | float) else None
    return {
        "source": source,
        "name": str(name or "score"),
        "value": number,
        "label": str(label or ""),
        "note": str(note or ""),
        "who": str(who or ""),
    }
