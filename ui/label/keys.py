"""The keys that grade, and judgements in words."""

from __future__ import annotations

from datetime import datetime

from core.store.labels import Judgement
from ui.app.markup import cut

KEYS = {0: "a", 1: "s", 2: "d", 3: "f"}  # the home row
SHORT = {0: "not relevant", 1: "background", 2: "answers a part", 3: "answers"}


def said(one: Judgement) -> str:
    """Describe a judgement."""
    if one.kind == "grade" and one.grade is not None:
        words = f"{one.grade} {SHORT[one.grade]}"
    else:
        words = {"cannot": "can't tell", "later": "later"}.get(one.kind, one.kind)
    return f"{words} (“{cut(one.note, 120)}”)" if one.note else words


def now() -> str:
    """Return the time of day at the server."""
    return datetime.now().astimezone().strftime("%H:%M:%S")
