"""The values of a parameter to try: by its range, or as listed."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from core.domain.errors import BadInput
from core.routes.declare import Parameter

MOST = 41  # values of one parameter
CELLS = 49  # pairs of two
# values of a whole number; steps of a fraction; values of each of two parameters
WHOLE, PARTS, PAIRED = 8, 10, 5
WIDE = 100  # a range this many times its low end is walked by factors, not by steps
_RANGE = re.compile(r"(?P<low>\S+?)\s*\.\.\s*(?P<high>\S+)(?:\s+step\s+(?P<step>\S+))?")
Grid = tuple[Any, ...]


def default(parameter: Parameter, now: Any, *, paired: bool = False) -> Grid:
    """Return the values tried unless others are asked for, in order, the one in use (`now`) among them.

    All of a choice or switch; of free text the one in use alone; up to 8 whole numbers; 11 fractions; by
    factors where the range is wide. Fewer where two parameters are tried together (`paired`).
    """
    if parameter.choices:
        return tuple(parameter.choices)
    if parameter.type is bool:
        return (False, True)
    if parameter.type is str:
        return (now,)
    count = PAIRED if paired else WHOLE if parameter.type is int else PARTS + 1
    values = (parameter.read(_kind(parameter, one), "grid") for one in _spread(parameter, now, count))
    return tuple(sorted({now, *values}))


def read(text: str, parameter: Parameter, owner: str) -> Grid:
    """Values from "0, 0.1, 0.2" or "0..1 step 0.1"; each once, numbers in order.

    Raises BadInput that names the value which the parameter does not allow, and what it does.
    """
    values: list[Any] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        found = _RANGE.fullmatch(part)
        steps = [part] if found is None or parameter.choices else _steps(found, parameter, owner)
        values += [parameter.read(one, owner) for one in steps]
        if len(values) > MOST:
            break
    values = list(dict.fromkeys(values))
    if not values:
        raise BadInput(
            f'grid {text!r} of {owner}.{parameter.name} is empty; give "0, 0.1, 0.2" or "0..1 step 0.1"'
        )
    if len(values) > MOST:
        raise BadInput(f"the grid of {owner}.{parameter.name} has more than {MOST} values; give fewer")
    return tuple(values) if parameter.choices else tuple(sorted(values))


def written(values: Sequence[Any]) -> str:
    """Write what `read` reads."""
    return ", ".join(map(shown, values))


def shown(value: Any) -> str:
    """Return a value of a parameter as people write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def cells(first: Grid, second: Grid) -> tuple[tuple[Any, Any], ...]:
    """Return all pairs of two parameters' values. Raises BadInput if there are too many."""
    if len(first) * len(second) > CELLS:
        raise BadInput(
            f"{len(first)} x {len(second)} values are {len(first) * len(second)} pairs; "
            f"give at most {CELLS}, 7 x 7 for example"
        )
    return tuple((a, b) for a in first for b in second)


def _spread(parameter: Parameter, now: Any, count: int) -> list[float]:
    """Return `count` numbers over the parameter's range, or around the value in use if it has no range."""
    low = float(parameter.low) if parameter.low is not None else min(0.0, float(now))
    high = float(parameter.high) if parameter.high is not None else max(1.0, 2 * float(now))
    if parameter.type is int and high - low < count:
        return [low + one for one in range(int(high - low) + 1)]
    if low >= 0 and high > 1 and high >= WIDE * max(low, 0.01 * high):
        least = max(low, high / WIDE if low == 0 else low)
        factors = count - (low == 0)
        walked = [least * (high / least) ** (n / (factors - 1)) for n in range(factors)]
        return [low, *map(_round, walked)] if low == 0 else list(map(_round, walked))
    digits = 2 if high - low >= 0.5 else 6
    return [round(low + (high - low) * n / (count - 1), digits) for n in range(count)]


def _round(value: float) -> float:
    """To one digit, or two where that moves it by more than a tenth: 0.46, 2, 37, 1000."""
    one = float(f"{value:.1g}")
    return one if abs(one - value) <= 0.1 * value else float(f"{value:.2g}")


def _kind(parameter: Parameter, value: float) -> Any:
    return round(value) if parameter.type is int else value


def _steps(found: re.Match[str], parameter: Parameter, owner: str) -> list[Any]:
    low, high = (parameter.read(found[end], owner) for end in ("low", "high"))
    try:
        step = float(found["step"] or (1 if parameter.type is int else (high - low) / PARTS or 1))
    except ValueError:
        step = math.nan
    if not (step > 0 and math.isfinite(step)) or high < low:
        raise BadInput(
            f"grid {found[0]!r} of {owner}.{parameter.name}: give low..high step s, with low <= "
            f"high and s > 0"
        )
    count = math.floor((high - low) / step + 1e-9) + 1
    if count > MOST:
        raise BadInput(
            f"grid {found[0]!r} of {owner}.{parameter.name} has {count} values; give at most {MOST}"
        )
    return [_kind(parameter, round(low + n * step, 9)) for n in range(count)]
