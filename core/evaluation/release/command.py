"""The `gate` command that applies given criteria, to copy into a build."""

from __future__ import annotations

from dataclasses import Field
from shlex import join
from typing import Any

from core.evaluation.finding import MARGIN
from core.evaluation.options import DeclaredOption, options
from core.evaluation.release.criteria import Criteria


def command(name: str, criteria: Criteria, *, against: str | None = None, report: str | None = None) -> str:
    """Return one line for a shell; the share that may fail is 1 if the criteria have no such limit."""
    words = ["python", "-m", "core", "gate", name]
    # numbers first, the margin last of them
    ordered = sorted(options(criteria).values(), key=_place)
    for one, own in ordered:
        value = getattr(criteria, one.name)
        value = 1 if value is None and one.name == "max_failed" else value
        if value is not None and (one.name, value) != ("margin", MARGIN):
            words += own.argument(value)
    words += ["--against", against] if against else []
    words += ["--report", report] if report else []
    return join(words)


def _place(given: tuple[Field[Any], DeclaredOption]) -> tuple[bool, bool]:
    one, _ = given
    return one.type == "bool", one.name == "margin"
