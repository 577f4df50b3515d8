"""Replies of several lines, read as what they are. Pure."""

from __future__ import annotations

import re

_BULLET = re.compile(r"^\s*(?:[-*•]+|[(#]?\d{1,2}[.):])\s+")


def reply_lines(reply: str) -> tuple[str, ...]:
    """The non-empty lines without bullets, numbers and quotes; a heading ("Queries:") is none."""
    cleaned = (_BULLET.sub("", line).strip().strip('"') for line in reply.splitlines())
    return tuple(line for line in cleaned if line and not line.endswith(":"))


def first_line(reply: str) -> str:
    """The first line with anything in it, without quotes; "" if there is none."""
    return next((line.strip().strip('"') for line in reply.splitlines() if line.strip()), "")
