"""The choice of one route of a run, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence

from core.domain.types import Run
from ui.app.choice import choice
from ui.app.markup import cut


def route_choice(run: Run, names: Sequence[str], key: str) -> str:
    """Draw a choice among `names`, stored under `key`, and return the chosen route, at first the first."""
    titles = {one.route: cut(one.title, 60) for one in run.results if one.route in names}
    return choice("route", key, "Route", titles, always=True, width=260)
