"""The rate limits of services: all calls of this process to an endpoint share its waits."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from core.backends.llm import wire

AGAIN = 5  # times that a call is made again
MOMENT_S = 0.05  # the least that is waited
PAUSE_S = 0.5  # before the first of them if the service does not say how long; twice as long each time
JITTER = 0.25  # of a wait, added or taken off, so that calls do not all come back at once
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_WORDS = re.compile(r"(?:try again|retry)[^.\d]{0,20}(\d+(?:\.\d+)?) ?(ms|s|m)", re.IGNORECASE)


class Pace:
    """Until when an endpoint is not asked, in time.monotonic()."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def left(self) -> float:
        """Seconds until it may be asked."""
        with self._lock:
            return max(0.0, self._until - time.monotonic())

    def hold(self, seconds: float) -> None:
        """Ask nothing for `seconds` from now."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace(endpoint: str) -> Pace:
    """Return the pace of an endpoint, shared by this process."""
    with _lock:
        return _paces.setdefault(endpoint, Pace())


def pause(attempt: int) -> float:
    """Seconds before try `attempt`, counted from 0, where the service does not say how long."""
    return PAUSE_S * 2.0**attempt * random.uniform(1 - JITTER, 1 + JITTER)


def asked_wait(headers: Mapping[str, str], data: bytes) -> float | None:
    """Return the seconds that a refusal asks to wait, from a header, Google's RetryInfo or a sentence; None
    if it does not say.
    """
    if (found := _seconds(headers.get("retry-after-ms"))) is not None:
        return found / 1000
    if (found := wire.retry_after(headers.get("retry-after"), datetime.now(UTC))) is not None:
        return found
    if (found := exhausted(headers)) is not None:
        return found
    if told := re.search(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"', data):
        return float(told[1])
    said = _WORDS.search(data.decode(errors="replace"))
    return float(said[1]) * _UNITS[said[2].lower()] if said else None


def exhausted(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until an exhausted limit resets, by `x-ratelimit-*`; None if no limit is
    exhausted.
    """
    waits = []
    for kind in ("requests", "tokens"):
        left = _seconds(headers.get(f"x-ratelimit-remaining-{kind}"))
        wait = _span(headers.get(f"x-ratelimit-reset-{kind}"))
        if left is not None and left <= 0 and wait is not None:
            waits.append(wait)
    return max(waits, default=None)


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def _span(value: str | None) -> float | None:
    """Convert a duration such as "1m30s", "170ms" or "12" to seconds."""
    if value is None:
        return None
    found = _SPAN.findall(value)
    return sum(float(n) * _UNITS[unit] for n, unit in found) if found else _seconds(value)
