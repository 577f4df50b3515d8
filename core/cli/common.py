"""What every command shares: --json and --debug, one JSON document out, progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def output_options(function: F) -> F:
    """Add --json (given as `as_json`) and --debug (read by `core.cli.main`)."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout."),
        click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def emit(document: Any, text: Callable[[], str], *, as_json: bool) -> None:
    """Write the one result of a command: `document` as JSON, or `text()` for people.

    JSON is ASCII and has no NaN: any parser reads it, and no terminal is steered by what a document says.
    """
    click.echo(json.dumps(document, indent=1, allow_nan=False) if as_json else text())


def note(text: str) -> None:
    """Say something beside the result, on stderr."""
    from core.cli.text import one_line

    click.echo(one_line(text), err=True)


class Bar:
    """Progress on stderr: tqdm's bar on a terminal, else a plain line every ten seconds and at the end."""

    def __init__(self, label: str, unit: str = "") -> None:
        self.label, self.unit = label, unit
        self._began = self._said = time.monotonic()
        self._first: int | None = None
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` units are finished."""
        if self._first is None:
            self._first = done  # what an earlier run did tells nothing about the speed of this one
        if sys.stderr.isatty():
            self._draw(done, total)
        elif done >= total or time.monotonic() - self._said >= 10:
            self._said = time.monotonic()
            click.echo(
                f"{self.label}: {done} of {total}{self.unit and ' ' + self.unit}{self._left(done, total)}",
                err=True,
            )

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=total, initial=done, desc=self.label, unit=self.unit or "it", file=sys.stderr
            )
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        if done >= total:
            self._bar.close()

    def _left(self, done: int, total: int) -> str:
        new = done - (self._first or 0)
        if new <= 0 or done >= total:
            return f", {time.monotonic() - self._began:.0f} s"
        return f", about {(time.monotonic() - self._began) / new * (total - done):.0f} s left"
