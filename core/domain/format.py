"""Quantities as people read them."""

from __future__ import annotations

import math


def size(count: float) -> str:
    """Bytes for people."""
    power = min(3, int(math.log(count, 1024))) if count >= 1 else 0
    return f"{count / 1024**power:.{1 if power else 0}f} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def time_left(seconds: float) -> str:
    """Minutes or seconds for people, rounded up."""
    count, what = (math.ceil(seconds / 60), "minute") if seconds > 60 else (math.ceil(seconds), "second")
    return f"{count} {what}{'' if count == 1 else 's'}"
