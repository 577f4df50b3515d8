"""Values of records: names that frameworks and tools give to what a trace holds (vocabulary.toml), fields
under several names, numbers and times in any usual form, and what people and judges said.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

VOCABULARY: dict[str, Any] = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text("utf-8"))
FEEDBACK = "feedback"  # the attribute that has what was said of a span, a list


def names(key: str) -> tuple[str, ...]:
    """Return a list of the vocabulary."""
    return tuple(VOCABULARY[key])


def either(record: Mapping[str, Any], *names: str) -> Any:
    """Return the first of these fields that is there, and neither null nor an empty text."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def fields_of(source: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a span in a record of `source`, by the names that the vocabulary has for them."""
    return {field: either(record, *names) for field, names in VOCABULARY["fields"][source].items()}


def parsed_text(text: str) -> Any:
    """Return the value of a text that is a JSON list, object or text; None for any other."""
    text = text.strip()
    try:
        return json.loads(text) if text[:1] in ("[", "{", '"') and text else None
    except (ValueError, RecursionError):
        return None


def opened(value: Any) -> Any:
    """Return the value of a text that is JSON; any other as it is."""
    found = parsed_text(value) if isinstance(value, str) else None
    return value if found is None else found


def sides(
    given: Any, output: Any, used: Any = None, model: Any = None, session: Any = None
) -> dict[str, Any]:
    """Return an input, an output, the tokens `used`, a model and a session as attributes."""
    counts = used if isinstance(used, dict) else {}
    found = {to: counts[name] for name, to in VOCABULARY["tokens"].items() if name in counts}
    for name, value in (("input.value", opened(given)), ("output.value", opened(output))):
        plain = isinstance(value, str | None)
        found[name] = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    found |= {"llm.model_name": model and str(model), "session.id": session and str(session)}
    return {name: value for name, value in found.items() if value is not None}


def feedback_of(
    source: str, name: Any, value: Any, label: Any = None, note: Any = None, who: Any = None
) -> dict[str, Any]:
    """Return what a person or a judge said of a span: a score, a label or both, with where it is from."""
    if isinstance(value, str):
        label, value = (label or value), None
    number = float(value) if isinstance(value, int | float) else None
    texts = {"source": source, "name": name or "score", "label": label, "note": note, "who": who}
    return {key: str(text or "") for key, text in texts.items()} | {"value": number}


def string_of(value: Any) -> str:
    """Return a text or a number as text, anything else as ""."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def whole(value: Any) -> int | None:
    """Return a whole number of 64 bits, also written as a text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        value = int(value[:30])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def finite_number(value: Any) -> float | None:
    """Return a finite number, also written as a text; None for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def nanoseconds(value: Any) -> int:
    """Convert a time to nanoseconds since 1970, from a number of any usual unit or from ISO 8601."""
    if isinstance(value, str) and not value.strip().isdecimal():
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1e9)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("no time")
    number = float(value) if isinstance(value, float) else int(value)
    if not math.isfinite(number) or not 0 < number < 2**63:
        raise ValueError("no time")
    for above, factor in ((10**17, 1), (10**14, 10**3), (10**11, 10**6)):
        if number >= above:
            return int(number * factor)
    return int(number * 10**9)
