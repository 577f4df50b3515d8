"""The time of day when the process began, plus the seconds since: no change of the clock touches it."""

import time

_BEGAN = time.time() - time.monotonic()


def now() -> float:
    """Return seconds since 1970. A machine that slept may be behind by that time."""
    return _BEGAN + time.monotonic()
