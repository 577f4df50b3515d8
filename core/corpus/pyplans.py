"""The modules and classes of packages in the docstring corpus; it embeds in minutes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from core.domain.settings import PROJECT


@dataclass(frozen=True, slots=True)
class Plan:
    """The documented parts of a package."""

    modules: tuple[str, ...]  # names of modules
    classes: tuple[str, ...] | None = ()  # classes whose methods are included; None for every class
    leave_out: str = ""  # a pattern for names: generated families, and what works only while an app runs


_DATA = tomllib.loads((PROJECT / "data" / "pydocs" / "plans.toml").read_text(encoding="utf-8"))
STANDARD_LIBRARY: tuple[str, ...] = tuple(_DATA["standard_library"].split())
PLANS: Mapping[str, Plan] = {
    name: Plan(tuple(one["modules"].split()), tuple(one.get("classes", "").split()), one.get("leave_out", ""))
    for name, one in _DATA["packages"].items()
}
