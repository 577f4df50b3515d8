"""Starts a pipeline's runner, and ends with it every process that it started.

`python supervisor.py PARENT MEGABYTES COMMAND...`, on Linux alone. It imports little, so that it takes 10 MB.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time

LOOK_S = 0.5  # between looks at the parent and at the memory
END_S = 5.0  # for processes to end that were killed
PR_SET_CHILD_SUBREAPER = 36
SIGNALS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def descendants() -> list[int]:
    """Return the processes below this one: a subreaper is the parent of those whose own parent has ended."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue  # it has just ended
            children.setdefault(parent, []).append(int(name))
    found, below = [], children.get(os.getpid(), [])
    while below:
        found += below
        below = [child for one in below for child in children.get(one, [])]
    return found


def resident(process: int) -> int:
    """Return the bytes in memory of a process, shared pages included; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def own(process: int) -> int:
    """Return the bytes of a process in which pages that n processes share count 1/n; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    except OSError:
        return 0


def reap() -> dict[int, int]:
    """Return the wait status of each child that has ended."""
    ended: dict[int, int] = {}
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if child == 0:
            return ended
        ended[child] = status


def end_all() -> None:
    """Kill every process below this one, and those that they start meanwhile."""
    until = time.monotonic() + END_S
    while (found := descendants()) and time.monotonic() < until:
        for one in found:
            try:
                os.kill(one, signal.SIGKILL)
            except OSError:
                continue  # it has ended, or is another user's
        reap()
        time.sleep(0.002)


def start(command: list[str], most: int) -> int:
    """Start the runner with at most `most` bytes of data for each process, and return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(127)


def main(parent: int, most: int, command: list[str]) -> int:
    """Wait until the runner or the parent ends or this process gets a signal; then end all the others."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    runner = start(command, most)
    stderr = os.dup(2)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the runner's alone: their ends are seen when it ends
        os.dup2(nothing, stream)
    status = None
    while status is None and os.getppid() == parent:
        told = signal.sigtimedwait(SIGNALS, LOOK_S)
        if told is not None and told.si_signo != signal.SIGCHLD:
            break
        status = reap().get(runner)
        if told is None and sum(map(resident, below := descendants())) > most and sum(map(own, below)) > most:
            os.write(stderr, f"its processes together took more than {most >> 20:,} MB\n".encode())
            status = 1 << 8
    end_all()
    os.close(stderr)
    if status is not None and os.WIFSIGNALED(status):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status) if status is not None else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) << 20, sys.argv[3:]))
