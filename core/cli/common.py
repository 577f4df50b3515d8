"""Output shared by all commands: one JSON document or text on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click

from core.cli.commands import json_asked
from core.domain.background_job import BackgroundJob
from core.domain.errors import BadInput
from core.domain.format import ProgressBar
from core.domain.jsonl import finite
from core.domain.text import one_line


def emit(document: Any, text: str | Callable[[], str]) -> None:
    """Write the one result of a command: `document` as JSON, or `text` for people.

    JSON is ASCII and has null for NaN: any parser reads it, and no terminal is steered by what it says.
    """
    if json_asked():
        text = json.dumps(finite(document), indent=1, allow_nan=False)
    click.echo(text if isinstance(text, str) else text())


def attributes(one: object, names: str) -> dict[str, Any]:
    """Return the attributes of an object whose names, with spaces between, are given."""
    return {name: getattr(one, name) for name in names.split()}


def export(content: bytes, out: Path | None, name: str, document: Mapping[str, Any], told: str) -> None:
    """Write a new file, called `name` unless --out says otherwise, or for "-" to stdout, and report it."""
    if str(out) == "-":
        if json_asked():
            raise BadInput("--json and --out - both write to stdout; give --out FILE")
        sys.stdout.buffer.write(content)
        return
    file = out or Path(name)
    try:
        with file.open("xb") as target:
            target.write(content)
    except FileExistsError:
        raise BadInput(f"{file} already exists; use another --out") from None
    except OSError as error:
        raise BadInput(f"cannot write --out {file}: {error.strerror or error}") from None
    emit({**document, "path": str(file), "bytes": len(content)}, f"{told} {file}")


def bytes_of(file: Path, most: int, what: str) -> bytes:
    """Read a file of at most `most` bytes. Raises BadInput with `what` it should be."""
    try:
        if file.stat().st_size > most:
            raise BadInput(f"{file} is larger than {most // 2**20} MiB and cannot be {what}")
        return file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror or error}") from None


def note(text: str) -> None:
    """Print a message to stderr."""
    click.echo(one_line(text), err=True)


def warn(texts: Iterable[str]) -> None:
    """Print warnings to stderr."""
    for text in texts:
        note(f"warning: {text}")


def listed(given: str | None) -> tuple[str, ...]:
    """Return the names in "a,b"."""
    return tuple(one.strip() for one in (given or "").split(",") if one.strip())


@contextmanager
def working(unit: str = "") -> Iterator[tuple[ProgressBar, threading.Event]]:
    """Yield a bar of progress and an event that Ctrl-C sets; see `stoppable`."""
    bar = ProgressBar(unit)
    try:
        with stoppable() as stop:
            yield bar, stop
    finally:
        bar.close()


def followed(job: BackgroundJob, label: str) -> None:
    """Wait with a bar until a job has ended; Ctrl-C stops it, and finished work stays."""
    with working() as (bar, stop):
        while not job.wait(0.2):
            bar(label, job.finished, job.total)
            if stop.is_set():
                job.cancel()
        bar(label, job.finished, job.total)


def ended(job: BackgroundJob) -> int:
    """Return the exit code of a command that followed a job, printing any error."""
    if job.error:
        note(f"error: {job.error}")
    return 1 if job.error or job.cancelled else 0


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets, to end work at a safe point; a second Ctrl-C interrupts at
    once.
    """
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()
        note("stopping; finished work is saved")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


WIDTH = 110  # where stdout is no terminal
_FIGURE = re.compile(r"[-+−]?\.?\d|-?$")  # how a figure begins; a dash or nothing stands for none


def cut(text: str, width: int) -> str:
    """`text` on one line of at most `width` columns."""
    text = one_line(text)
    if columns(text) <= width:
        return text
    while columns(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under headers, two spaces apart; columns of figures are flushed right, the last is cut to fit."""
    cells = [[one_line(str(cell)) for cell in row] for row in [headers, *rows]]
    widths = [max(columns(row[i]) for row in cells) for i in range(len(headers))]
    right = [all(_FIGURE.match(row[i]) for row in cells[1:]) for i in range(len(headers))]
    room = shutil.get_terminal_size((WIDTH, 24)).columns
    lines = []
    for row in cells:
        line = ""
        for i, cell in enumerate(row):
            last = i == len(row) - 1
            shown = cut(cell, max(12, room - columns(line))) if last else cell
            blank = " " * (widths[i] - columns(shown))
            line += blank + shown if right[i] else shown + blank
            line += "" if last else "  "
        lines.append(line.rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths)[:room])
    return "\n".join(lines)


def amount(value: float | None, digits: int = 4) -> str:
    """Format a figure, or a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def columns(text: str) -> int:
    """Terminal columns: East Asian wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
