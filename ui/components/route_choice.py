"""The choice of one route of a run, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence

from core.domain.types import Run
from ui.app.choice import choice
from ui.app.markup import cut


def route_choice(run: Run, names: Sequence[str], key: str) -> str:
    """Draw a choice among `names`, stored under `key`, and return the chosen route, at first the first."""
    titles = {result.route: cut(result.title, 60) for result in run.results}
    return choice("route", key, "Route", names, always=True, width=260, format_func=titles.__getitem__)
