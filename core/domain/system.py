"""Everything beyond what Python guarantees on each system, with a simple fallback.

Nothing else in the program uses resource limits, polling, alarms, process groups, user ids, /proc or the C
library: ruff bans them elsewhere. `core/backends/external/supervisor.py` runs alone, on Linux.
"""

from __future__ import annotations

import ctypes
import logging
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

log = logging.getLogger(__name__)
LINUX, WINDOWS = sys.platform == "linux", os.name == "nt"
PROC = Path("/proc")
BLOCK = 1 << 18  # bytes read at once
WAITING = 8  # blocks that are kept for a reader without `select.poll`
EMPTY = 128  # bytes of a .npy file without a number, which cannot be mapped
LOOK_S = 0.25  # between looks at the limits of a process whose system has none
REPLACE_S = 2.0  # for others to close a file that is to be replaced
OUT_OF_TIME, OUT_OF_MEMORY = 152, 153  # exit codes of a process that reached a limit of its own

# A process that these options start is not interrupted by keys pressed in this one's terminal.
OWN_SESSION: dict[str, Any] = (
    {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    if hasattr(subprocess, "CREATE_NEW_PROCESS_GROUP")
    else {"start_new_session": True}
)
# Variables without which Python does not start, or finds no home or temporary folder. None of them is secret.
NEEDED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONHOME"),
    *("PYTHONDONTWRITEBYTECODE", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA"),
)
ENDING: list[signal.Signals] = [  # what a terminal, a service manager or a closed terminal sends
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
]

PR_SET_DUMPABLE = 4  # prctl(2)
# glibc's numbers for mallopt (malloc.h).
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
# By default glibc has an arena for each of many threads, and learns to keep large blocks. After an evaluation
# of 12 routes x 66 questions a process then holds 990 MB and grows by 50 to 150 MB with the next; with these
# it holds 640 MB and does not grow, at the same speed.
WANTED = {ARENA_MAX: 2, MMAP_THRESHOLD: 256 * 1024, TRIM_THRESHOLD: 512 * 1024}
_hidden: list[bool] = []
_most: dict[Literal["seconds", "bytes"], float] = {}  # limits that the thread of `_watch` keeps
_alarm: list[threading.Timer] = []  # at most one


class Incoming:
    """The bytes that arrive at a pipe; for one thread at a time. Closing the pipe is up to its owner."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe, self._closed = pipe.fileno(), False
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self._pipe, select.POLLIN)
        else:
            self._blocks = queue.Queue[bytes](WAITING)
            self._pipe = os.dup(self._pipe)  # the thread's own, so that it reads no later file of this number
            threading.Thread(target=self._fetch, daemon=True, name="pipe").start()

    def read(self, seconds: float) -> bytes | None:
        """Return what has arrived, b"" at the end; None if nothing arrives within `seconds`."""
        if self._poll is not None:
            return os.read(self._pipe, BLOCK) if self._poll.poll(seconds * 1000) else None
        with suppress(queue.Empty):
            block = self._blocks.get(timeout=seconds)
            if not block:
                self._blocks.put(block)  # the end stays the end
            return block
        return None

    def close(self) -> None:
        """Read no more."""
        self._closed = True
        if self._poll is None:
            with suppress(queue.Empty):
                while True:
                    self._blocks.get_nowait()  # room for the thread, which then ends

    def _fetch(self) -> None:
        with os.fdopen(self._pipe, "rb", buffering=0) as pipe:
            while not self._closed and (block := pipe.read(BLOCK)):
                self._blocks.put(block)
        self._blocks.put(b"")


def limit(name: Literal["CPU", "AS", "CORE", "FSIZE"], most: int) -> bool:
    """Limit a resource of this process (setrlimit(2)). Return False if the system has no such limit."""
    try:
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    except (AttributeError, ValueError, OSError):  # Windows; macOS refuses some
        return False
    return True


def limit_time(seconds: int) -> None:
    """End this process after `seconds` more of processor time; a later call allows it more."""
    most = int(time.process_time()) + 1 + seconds
    if not limit("CPU", most):
        _watch("seconds", most)


def limit_memory(most: int) -> None:
    """Let this process have `most` bytes of addresses, or end it when that many are in memory."""
    if not limit("AS", most):
        _watch("bytes", most)


def _watch(what: Literal["seconds", "bytes"], most: float) -> None:
    begun = bool(_most)
    _most[what] = most
    if not begun:
        threading.Thread(target=_end_at_limit, daemon=True, name="limits").start()


def _end_at_limit() -> None:
    import psutil

    this = psutil.Process()
    while True:
        if time.process_time() > _most.get("seconds", float("inf")):
            os._exit(OUT_OF_TIME)
        if this.memory_info().rss > _most.get("bytes", float("inf")):
            os._exit(OUT_OF_MEMORY)
        time.sleep(LOOK_S)


def end_after(seconds: float) -> None:
    """End this process after so many seconds, also inside a library; 0 calls that off. In the main thread."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # this action needs no turn of the interpreter
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return
    while _alarm:
        _alarm.pop().cancel()
    if seconds:
        _alarm.append(threading.Timer(seconds, os._exit, [OUT_OF_TIME]))
        _alarm[0].daemon = True
        _alarm[0].start()


def how_ended(code: int) -> Literal["time", "memory", "signal", ""]:
    """Return what ended a process with this exit code: a limit, the system for memory, another signal."""
    if code in (OUT_OF_TIME, -getattr(signal, "SIGXCPU", 1000)):
        return "time"
    if code in (OUT_OF_MEMORY, -getattr(signal, "SIGKILL", 1000)):
        return "memory"
    return "signal" if code < 0 else ""


def interrupt(process: subprocess.Popen[bytes] | None = None) -> bool:
    """Interrupt a process, or this one, as Ctrl-C does. Return False if that is impossible here."""
    if process is not None:
        if not WINDOWS:
            process.send_signal(signal.SIGINT)
        return not WINDOWS
    if WINDOWS:
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)  # wakes the main thread, from any thread
    return True


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of OWN_SESSION, and those that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        import psutil

        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
    process.kill()


def is_ours(file: IO[Any]) -> bool:
    """Return True if an open file belongs to this user, or the system tells no users apart by number."""
    return not hasattr(os, "getuid") or os.fstat(file.fileno()).st_uid == os.getuid()


def replace(source: Path | str, target: Path | str) -> None:
    """Rename a file or folder, replacing a file; on Windows once others have closed it. Raises OSError."""
    until = time.monotonic() + REPLACE_S
    while True:
        try:
            return os.replace(source, target)
        except PermissionError:
            if not WINDOWS or time.monotonic() > until:
                raise
            time.sleep(0.02)


def mapped(file: Path) -> np.ndarray[Any, Any]:
    """Return the array in a .npy file, which stays there; on Windows it is read, as a mapped file cannot be
    replaced or deleted. Raises OSError, and ValueError for another file.
    """
    import numpy as np

    read = WINDOWS or file.stat().st_size <= EMPTY
    found: np.ndarray[Any, Any] = np.load(file, mmap_mode=None if read else "r", allow_pickle=False)
    return found.view(np.ndarray)  # `np.memmap` makes each slice costly


def python_in(environment: Path) -> Path:
    """Return the path of a virtual environment's interpreter."""
    return environment / "Scripts" / "python.exe" if WINDOWS else environment / "bin" / "python"


def write_utf8() -> None:
    """Print UTF-8: on Windows a pipe or a file would get the code page of the system."""
    for stream in (sys.stdout, sys.stderr):
        if WINDOWS and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")


@cache
def boot_id() -> str | None:
    """Return Linux' boot id; None elsewhere."""
    if not LINUX:
        return None
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def since_boot(pid: int) -> float:
    """Seconds from the machine's start to the process's, on Linux; ProcessLookupError, PermissionError."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        os.kill(pid, 0)  # raises too, unless it is only hidden from us
        raise PermissionError(f"process {pid} is hidden") from None
    fields = stat.rpartition(")")[2].split()  # from the third on: the second, a name, may hold anything
    if fields[0] in "ZX":
        raise ProcessLookupError(f"process {pid} has ended, and its parent has not looked")
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    """Return the number of cores this process may use, or, if the system does not say, of the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the processor's name as Linux reports it, or ""."""
    try:
        lines = (PROC / "cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def hide_environment() -> None:
    """Let no other process, root's included, read this one's variables in `/proc`. Linux alone shows them.

    The variables stay: they are copied, and what the kernel placed at the process's start is overwritten.
    """
    if not LINUX or _hidden:
        return
    _hidden.append(True)  # once: other threads may be reading variables later
    stat = (PROC / "self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(stat[47]), int(stat[48])  # env_start and env_end (proc_pid_stat(5))
    for name, value in os.environ.items():
        os.environ[name] = value  # the C library keeps a copy of its own
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)


def conceal() -> None:
    """Let no process of the same user read this one's memory or variables: Linux alone can; root still can
    read the memory.

    Core dumps and debuggers are refused too. So is /dev/stdin for this process, unless it is root's.
    """
    hide_environment()
    if LINUX and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        log.warning("other processes of this user may read this one's memory: prctl failed")


def give_back_memory() -> bool:
    """Make the allocator return freed memory to the system. Return True on success, which needs glibc."""
    if not LINUX:
        return False
    try:
        library = ctypes.CDLL(None)
        set_option = library.mallopt
    except (OSError, AttributeError):  # another C library
        log.debug("this C library has no mallopt: memory is managed as it comes")
        return False
    return all(set_option(option, value) == 1 for option, value in WANTED.items())
