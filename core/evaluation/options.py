"""Options declared once, as fields of a dataclass: type, default, help and limits of a command's option, of a
keyword in Python and of a control on a page. The parameters of commands declare their options so, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from inspect import Parameter, Signature, signature
from math import isfinite
from typing import Any

from core.domain.errors import BadInput

KEY = "option"  # in a field's metadata


@dataclass(frozen=True, slots=True)
class DeclaredOption:
    """The option of a command for one field."""

    help: str
    metavar: str | None = None
    # that of the field's name if empty; "--on/--off" for a switch that is on by default
    flags: str = ""
    # the values allowed; None for no limit
    least: float | None = 0
    most: float | None = None
    # converts the words that a command was given
    read: Callable[[Any], Any] | None = None

    def named(self, name: str) -> DeclaredOption:
        """Return the option with its flags, of a field or parameter called `name`."""
        return replace(self, flags=self.flags or f"--{name.replace('_', '-')}")

    def argument(self, value: Any) -> list[str]:
        """Return the words of a command line that give `value`; [] for the default of a switch."""
        if not isinstance(value, bool):
            return [self.flags, value if isinstance(value, str) else f"{value:.10g}"]
        on, _, off = self.flags.partition("/")
        return ([off] if not value else []) if off else [on] * value


def option(default: Any, *given: Any, **limits: Any) -> Any:
    """Return a field with an option."""
    return field(default=default, metadata={KEY: DeclaredOption(*given, **limits)})


def options(model: Any) -> dict[str, tuple[Field[Any], DeclaredOption]]:
    """Return the fields of `model` that have an option, by name."""
    known = {one.name: one for one in fields(model) if KEY in one.metadata}
    return {name: (one, one.metadata[KEY].named(name)) for name, one in known.items()}


def with_keywords(
    function: Callable[..., Any], fields: Mapping[str, Field[Any]], **defaults: Any
) -> Signature:
    """Return the signature of a function that takes fields as `**keywords`, with each of them by its name."""
    known = list(signature(function).parameters.values())[:-1]
    at = next((n for n, one in enumerate(known) if one.kind is Parameter.KEYWORD_ONLY), len(known))
    own = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name, one.default), annotation=one.type)
        for name, one in fields.items()
    ]
    return signature(function).replace(parameters=[*known[:at], *own, *known[at:]])


def check(one: Field[Any], value: Any, name: str = "") -> None:
    """Check a value by the type and the limits of its field. Raises BadInput."""
    given, kind = one.metadata[KEY], str(one.type)
    least, most = given.least, given.most
    if value is None and "None" in kind:
        return
    to = "" if least is None else f" {least} or more" if most is None else f" {least} to {most}"
    if kind.startswith(("int", "float")):
        whole = kind.startswith("int")
        good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        good = good and isfinite(value) and (least is None or value >= least)
        good = good and (most is None or value <= most)
        wanted = f" a whole number{to and ','}{to}" if whole else to or " a number"
    elif kind == "bool":
        good, wanted = isinstance(value, bool), " true or false"
    elif kind.startswith("Literal"):
        choices = re.findall(r"'([^']+)'", kind)
        good, wanted = value in choices, f" {' or '.join(choices)}"
    elif kind.startswith("str"):
        good, wanted = isinstance(value, str), " a text"
    else:
        return
    if not good:
        raise BadInput(f"{name or one.name}={value!r}; give{wanted}")
