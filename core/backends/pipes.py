"""Lines over the pipes of a process, each within a deadline."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from core.domain.system import Incoming

LOOK_S = 0.02  # how often a waiting thread checks whether it is to stop


class ProcessGone(Exception):
    """The process has ended, or closed its stdout."""


class LinePipes:
    """The stdin and stdout of a process that was started with unbuffered pipes; for one thread at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process was started without pipes")
        self._stdin, self._stdout = process.stdin, process.stdout
        self._incoming = Incoming(process.stdout)
        self._rest = b""  # read after the end of a line

    def send(self, data: bytes) -> None:
        """Write all of `data`. Raises ProcessGone."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._stdin.write(left) or 0 :]
        except OSError:  # of another kind on Windows
            raise ProcessGone from None

    def line(self, seconds: float, most: int, too_long: Exception, check: Callable[[], None]) -> bytes:
        """Return the next line. Raises TimeoutError, ProcessGone, `too_long` beyond `most` bytes, and what
        `check`, which is called while waiting, raises.
        """
        end = time.monotonic() + seconds
        blocks, size = [self._rest], len(self._rest)
        while b"\n" not in blocks[-1]:
            check()
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            block = self._incoming.read(min(LOOK_S, left))
            if block is None:
                continue
            if not block:
                raise ProcessGone
            blocks.append(block)
            size += len(block)
            if size > most:
                raise too_long
        line, _, self._rest = b"".join(blocks).partition(b"\n")
        return line

    def close(self) -> None:
        """Close both pipes."""
        self._incoming.close()
        self._stdin.close()
        self._stdout.close()
