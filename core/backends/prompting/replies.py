"""Replies in JSON that were asked for by a schema, read as what they are. Pure.

An endpoint may ignore a schema, so a reply that does not fit is None, never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def booleans(reply: str, count: int) -> tuple[tuple[bool, ...], bool] | None:
    """`supported`, exactly `count` of them, and `relevant`."""
    found = _mapping(reply)
    if found is None:
        return None
    supported, relevant = found.get("supported"), found.get("relevant")
    if not isinstance(supported, list) or len(supported) != count or not isinstance(relevant, bool):
        return None
    if not all(isinstance(one, bool) for one in supported):
        return None
    return tuple(supported), relevant


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a text, the number of the passage that is said to state it, and whether it does."""

    claim: str
    supported: bool
    passage: int | None = None


@dataclass(frozen=True, slots=True)
class Criticism:
    """A critic's claims, what it wants changed, and whether it is content."""

    claims: tuple[Claim, ...]
    feedback: str
    good: bool


CRITICISM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "claims": {
            "type": "array",
            "maxItems": 6,
            "items": {
                "type": "object",
                "properties": {
                    "claim": {"type": "string"},
                    "passage": {"type": ["integer", "null"]},
                    "supported": {"type": "boolean"},
                },
                "required": ["claim", "passage", "supported"],
                "additionalProperties": False,
            },
        },
        "feedback": {"type": "string"},
        "good": {"type": "boolean"},
    },
    "required": ["claims", "feedback", "good"],
    "additionalProperties": False,
}


def criticism(reply: str, passages: int) -> Criticism | None:
    """A reply of the form `CRITICISM` about so many passages. A claim that names a passage which is not
    there is not supported, whatever else is said of it; empty claims are left out.
    """
    found = _mapping(reply)
    if found is None:
        return None
    given, feedback, good = found.get("claims"), found.get("feedback"), found.get("good")
    if not isinstance(given, list) or not isinstance(feedback, str) or not isinstance(good, bool):
        return None
    claims = []
    for one in given:
        if not isinstance(one, dict):
            return None
        text, supported, number = one.get("claim"), one.get("supported"), one.get("passage")
        if not isinstance(text, str) or not isinstance(supported, bool):
            return None
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            return None
        there = number is None or 1 <= number <= passages
        if text.strip():
            claims.append(Claim(" ".join(text.split()), supported and there, number))
    return Criticism(tuple(claims), " ".join(feedback.split()), good)


def _mapping(reply: str) -> dict[str, Any] | None:
    try:
        found = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_BULLET = re.compile(r"^\s*(?:[-*•]+|[(#]?\d{1,2}[.):])\s+")


def reply_lines(reply: str) -> tuple[str, ...]:
    """The non-empty lines without bullets, numbers and quotes; a heading ("Queries:") is none."""
    cleaned = (_BULLET.sub("", line).strip().strip('"') for line in reply.splitlines())
    return tuple(line for line in cleaned if line and not line.endswith(":"))


def first_line(reply: str) -> str:
    """The first line with anything in it, without quotes; "" if there is none."""
    return next((line.strip().strip('"') for line in reply.splitlines() if line.strip()), "")
