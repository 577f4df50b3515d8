"""A condition on the metadata of passages, as a search backend takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from core.domain.errors import BadInput

Operator = Literal["=", "<", ">", "<=", ">=", "in"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Passages whose `field` compares so with `values`: one, or with "in" any of several. Several filters
    have to hold together. A passage without the field is never found.
    """

    field: str
    operator: Operator
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.operator not in get_args(Operator):
            raise BadInput(f"a filter compares by {', '.join(get_args(Operator))}, not by {self.operator!r}")
        if not self.values or (self.operator != "in" and len(self.values) != 1):
            raise BadInput(f"filter {self.field} {self.operator}: give one value, or with in at least one")
