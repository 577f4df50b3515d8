"""Which modules and classes of which packages the docstring corpus holds; it embeds in minutes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from core.domain.settings import PROJECT


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a package is documented: names in `modules`, methods of `classes` (None: of every class)."""

    modules: tuple[str, ...]
    classes: tuple[str, ...] | None = ()
    leave_out: str = ""  # a pattern for names: generated families, and what works only while an app runs


_DATA = tomllib.loads((PROJECT / "data" / "pydocs" / "plans.toml").read_text(encoding="utf-8"))
STANDARD_LIBRARY: tuple[str, ...] = tuple(_DATA["standard_library"].split())
PLANS: Mapping[str, Plan] = {
    name: Plan(tuple(one["modules"].split()), tuple(one.get("classes", "").split()), one.get("leave_out", ""))
    for name, one in _DATA["packages"].items()
}
