"""Replies in JSON that were asked for by a schema, read as what they are. Pure.

An endpoint may ignore a schema, so a reply that does not fit is None, never a guess.
"""

from __future__ import annotations

import json


def booleans(reply: str, count: int) -> tuple[tuple[bool, ...], bool] | None:
    """`supported`, exactly `count` of them, and `relevant`."""
    try:
        found = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    supported, relevant = found.get("supported"), found.get("relevant")
    if not isinstance(supported, list) or len(supported) != count or not isinstance(relevant, bool):
        return None
    if not all(isinstance(one, bool) for one in supported):
        return None
    return tuple(supported), relevant
