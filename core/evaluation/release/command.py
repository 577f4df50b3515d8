"""The `gate` command that applies given criteria, to copy into a build."""

from __future__ import annotations

from dataclasses import fields
from shlex import join

from core.evaluation.finding import MARGIN
from core.evaluation.release.criteria import Criteria, option_of


def command(name: str, criteria: Criteria, *, against: str | None = None, report: str | None = None) -> str:
    """Return one line for a shell; the share that may fail is 1 if the criteria have no such limit."""
    words = ["python", "-m", "core", "gate", name]
    # numbers first, the margin last of them
    for one in sorted(fields(criteria), key=lambda one: (one.type == "bool", one.name == "margin")):
        value = getattr(criteria, one.name)
        value = 1 if value is None and one.name == "max_failed" else value
        if value is not None and (one.name, value) != ("margin", MARGIN):
            words += option_of(one).argument(value)
    words += ["--against", against] if against else []
    words += ["--report", report] if report else []
    return join(words)
