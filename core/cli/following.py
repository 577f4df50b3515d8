"""Following background work on the command line: a bar, Ctrl-C, and how it ended."""

from __future__ import annotations

from core.cli.common import ProgressBar, note, stoppable
from core.domain.background_job import BackgroundJob


def followed(under_way: BackgroundJob, unit: str) -> None:
    """Wait with a bar until it has ended; Ctrl-C stops it, and finished work stays."""
    bar = ProgressBar("")
    with stoppable() as asked:
        while not under_way.wait(0.2):
            bar(unit, under_way.finished, under_way.total)
            if asked.is_set():
                under_way.cancel()
    bar(unit, under_way.finished, under_way.total)
    bar.close()


def ended(under_way: BackgroundJob) -> int:
    """Return the exit code of a command that followed a job, printing any error."""
    if under_way.error:
        note(f"error: {under_way.error}")
    return 1 if under_way.error or under_way.cancelled else 0
