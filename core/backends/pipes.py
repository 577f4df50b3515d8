"""Lines over the pipes of a process, each within a deadline."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, cast

from core.domain.system import OWN_SESSION, Incoming

LOOK_S = 0.02  # how often a waiting thread checks whether it is to stop


class ProcessGone(Exception):
    """The process has ended, or closed its stdout."""


class LinePipes:
    """A process and its stdin and stdout; for one thread at a time."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        """Start `command`, in a session of its own: keys pressed in a terminal are for who started it. Raises
        OSError.
        """
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            **OWN_SESSION,
            **options,
        )
        self._stdin = cast("IO[bytes]", self.process.stdin)
        self._stdout = cast("IO[bytes]", self.process.stdout)
        self._incoming = Incoming(self._stdout)
        self._rest = b""  # read after the end of a line

    def send(self, data: bytes) -> None:
        """Write all of `data`. Raises ProcessGone."""
        left = memoryview(data)
        try:
            while left:
                left = left[self._stdin.write(left) or 0 :]
        except OSError:  # of another kind on Windows
            raise ProcessGone from None

    def line(self, seconds: float, most: int, too_long: Exception, check: Callable[[], object]) -> bytes:
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

    def kill(self) -> None:
        """End the process wherever it is."""
        self.process.kill()
        self.close()
        self.process.wait()
