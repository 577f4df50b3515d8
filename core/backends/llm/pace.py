"""The rate limits of services: all calls of this process to an endpoint share its waits."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

from core.backends import admission
from core.backends.llm import wire
from core.domain.errors import Cancelled

T = TypeVar("T")
AGAIN = 5  # times that a call is made again
MOMENT_S = 0.05  # the least that is waited
# Before the first of them if the service does not say how long; twice as long each time, and at most.
PAUSE_S, LONGEST_S = 0.5, 30.0
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
        return max(0.0, self._until - time.monotonic())

    def hold(self, seconds: float) -> None:
        """Ask nothing for `seconds` from now."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)

    def patiently(
        self,
        call: Callable[[float], T],
        words: wire.EndpointWords,
        timeout: float,
        cancel: threading.Event,
        *,
        most_asked: float = AGAIN,
        final: Callable[[Exception], bool] = lambda _: False,
    ) -> T:
        """Return the result of `call`, which gets the seconds left of `timeout`. Repeat a call whose failure
        may pass: up to AGAIN times, or `most_asked` times if the service says how long to wait.

        Raises the last failure, or a `final` one at once; ModelFailed if a wait exceeds the time; Cancelled.
        """
        end, problem = time.monotonic() + timeout, ""
        for nth in count():
            if (wait := self.left()) > 0:
                if wait >= end - time.monotonic():
                    raise words.failed(f"asks to wait {wait:.3g} s, longer than the call has{problem}")
                with admission.service_wait(wait):
                    if cancel.wait(wait * random.uniform(1, 1 + JITTER / 5)):
                        raise Cancelled(f"stopped while it waited for {words.label}")
            try:
                return call(end - time.monotonic())
            except (wire.Passing, wire.ConnectionLost) as error:
                if final(error) or (isinstance(error, wire.ConnectionLost) and error.refused):
                    raise
                seconds = error.seconds if isinstance(error, wire.Passing) else None
                pause = min(PAUSE_S * 2.0**nth, LONGEST_S) * random.uniform(1 - JITTER, 1 + JITTER)
                most, wait = (AGAIN, pause) if seconds is None else (most_asked, max(seconds, MOMENT_S))
                if nth >= most or (seconds is None and wait >= end - time.monotonic()):
                    raise
                self.hold(wait)
                problem = f": {error}"
        raise AssertionError("unreachable")


_paces: dict[str, Pace] = {}


def pace(endpoint: str) -> Pace:
    """Return the pace of an endpoint, shared by this process."""
    return _paces.setdefault(endpoint, Pace())


def asked_wait(headers: Mapping[str, str], data: bytes) -> float | None:
    """Return the seconds that a refusal asks to wait, from a header, Google's RetryInfo or a sentence; None
    if it does not say.
    """
    if (found := _seconds(headers.get("retry-after-ms"))) is not None:
        return found / 1000
    if (found := retry_after(headers.get("retry-after"), datetime.now(UTC))) is not None:
        return found
    if (found := exhausted(headers)) is not None:
        return found
    said = _WORDS.search(data.decode(errors="replace"))
    return float(said[1]) * _UNITS[said[2].lower()] if said else None


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the seconds in a Retry-After header, given as a number or a date, or None if unreadable. Source:
    RFC 9110, section 10.2.3.
    """
    seconds = _seconds(value)
    if value is not None and seconds is None:
        try:
            until = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds) if seconds is not None and math.isfinite(seconds) else None


def exhausted(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until an exhausted limit resets, by `x-ratelimit-*`; None if no limit is
    exhausted.
    """
    waits = []
    for kind in ("requests", "tokens"):
        left, reset = (headers.get(f"x-ratelimit-{name}-{kind}") for name in ("remaining", "reset"))
        parts = _SPAN.findall(reset or "")  # such as "1m30s" and "170ms"
        wait = sum(float(n) * _UNITS[unit] for n, unit in parts) if parts else _seconds(reset)
        if (_seconds(left) or 0) <= 0 and left is not None and wait is not None:
            waits.append(wait)
    return max(waits, default=None)


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
