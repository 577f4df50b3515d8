"""`doctor`: checks of what works on this machine, with fixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from core.cli.common import emit, note, output_options
from core.cli.text import one_line

if TYPE_CHECKING:
    from core.engine.doctor import Check


@click.command("doctor")
@click.option("--quick", is_flag=True, help="Load no model.")
@output_options
def doctor_(quick: bool, as_json: bool) -> int:
    """Check this installation and show a fix for each problem."""
    from core.domain import settings
    from core.engine.doctor import examine

    found = list(examine(settings.current(), quick=quick, note=lambda what: note(f"checking {what}")))
    healthy = all(check.state != "failed" for check in found)
    emit({"ok": healthy, "checks": [asdict(check) for check in found]}, lambda: _text(found), as_json=as_json)
    return 0 if healthy else 1


def _text(found: Sequence[Check]) -> str:
    marks = {"ok": "ok     ", "warning": "WARNING", "failed": "FAILED "}
    lines = []
    for check in found:
        lines.append(f"{marks[check.state]}  {one_line(check.name)}: {one_line(check.detail)}")
        if check.fix:
            lines.append(f"         -> {one_line(check.fix)}")
    return "\n".join(lines)
