"""The route parameters behind the values tried on a stored step, and the settings that can be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from core.analysis.what_if.fusion import ReplayedFusion
from core.domain.fusion import Norm
from core.domain.parameters import member
from core.domain.types import Span
from core.routes.declare import Parameter, Route

MAX_K, MAX_WEIGHT = 1000, 10.0  # where no parameter says what is sensible
SHARE = "alpha"  # what a parameter means that sets the second weight of two; the first is the rest of 1


@dataclass(frozen=True, slots=True)
class Control:
    """One adjustable setting of a fusion. `names` are the settings that it sets to its value, `rest` those
    that share the remainder to 1. `low` and `high` are None for a choice. `parameter` is the route's
    parameter, None if it has none for it.
    """

    name: str
    label: str
    value: Any
    names: tuple[str, ...]
    rest: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    parameter: str | None = None

    def changes(self, value: Any) -> dict[str, Any]:
        """Return the changes of moving it to `value`; {} if it stays."""
        if value == self.value:
            return {}
        rest = dict.fromkeys(self.rest, 1 - value) if self.rest else {}
        return {**dict.fromkeys(self.names, value), **rest}


def sets(parameter: Parameter, span: Span, value: Any) -> dict[str, Any]:
    """Return the arguments of a step that `value` of a route's parameter sets: {} if it set nothing of it."""
    found = {name: value for name, setter in span.set_by.items() if setter == parameter.name}
    return {**found, "weights.0": 1 - value} if found and parameter.tunes == SHARE else found


def as_parameters(route: Route, span: Span, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters of `route` that make its next run do what `changes` does to the step `span`.

    `changes` are by the argument of the step ("k", "weights.0", "low"...). None where some change has no
    parameter, or one parameter would have to take several values. BadInput for a value that it does not
    allow.
    """
    found: dict[str, Any] = {}
    met: set[str] = set()
    for parameter in route.parameters:
        own = [name for name, setter in span.set_by.items() if setter == parameter.name]
        if not own:
            continue
        value = changes.get(own[0], argument(span, own[0]))
        wanted = sets(parameter, span, value)
        if wanted.keys().isdisjoint(changes):
            continue
        if any(changes.get(name, argument(span, name)) != one for name, one in wanted.items()):
            return None
        found[parameter.name] = route.settle({parameter.name: value})[parameter.name]
        met.update(wanted)
    return found if met >= set(changes) else None


def argument(span: Span, name: str) -> Any:
    """Return an argument of a step by its dotted name, or None if it has no such argument."""
    return member(span.args, name)


def controls(route: Route | None, fusion: ReplayedFusion, names: Sequence[str]) -> list[Control]:
    """Return the controls of `fusion`; the settings that a parameter of its route set, with its bounds.

    `names` are what the lists are called.
    """
    groups: list[tuple[Parameter | None, tuple[str, ...]]] = [
        (parameter, own)
        for parameter in (route.parameters if route is not None else ())
        if (
            own := tuple(
                n for n, p in fusion.span.set_by.items() if p == parameter.name and n in fusion.values
            )
        )
    ]
    taken = {name for parameter, own in groups for name in (*own, *_rest(parameter))}
    groups += [(None, (name,)) for name in fusion.values if name not in taken]
    if fusion.method != "marginal" and _longest(fusion) > 1:
        groups.append((None, ("pool",)))
    order = ("weights", "norm", "k", "lam", "pool")
    groups.sort(key=lambda group: (not _rest(group[0]), order.index(group[1][0].partition(".")[0]), group[1]))
    return [_control(group, fusion, parameter, names) for parameter, group in groups]


def _control(
    group: tuple[str, ...], fusion: ReplayedFusion, parameter: Parameter | None, names: Sequence[str]
) -> Control:
    rest = _rest(parameter)
    name = SHARE if rest else group[0]
    help, called = (parameter.help, parameter.name) if parameter else ("", None)
    value = fusion.values.get(group[0], _longest(fusion))  # the pool of a fusion is no setting of the step
    if name == "norm":
        choices = parameter.choices if parameter is not None else get_args(Norm)
        return Control(name, "normalisation", value, group, choices=choices, help=help, parameter=called)
    low, high = _bounds(fusion, name)
    if parameter is not None:
        low = low if parameter.low is None else parameter.low
        most = high if parameter.high is None else parameter.high
        high = min(high, most) if fusion.method == "marginal" else most
    label = "lambda" if name == "lam" else name
    if name.startswith("weights."):
        at = int(name.partition(".")[2])
        if parameter is not None and at > 1:
            low = max(low, 0.1)  # a list besides a route's own two is not searched at all with weight 0
        one = names[at] if at < len(names) else f"list {at + 1}"
        label = f"weight of {one}" if len(group) == 1 else (called or "weight")
    if name == "pool" and fusion.method != "marginal":
        help = "passages of each list to fuse; the run fused all of them"
    whole = isinstance(value, int) and name in ("k", "pool")
    return Control(
        name, label, value, group, rest, min(low, value), max(high, value), whole, (), help, called
    )


def _rest(parameter: Parameter | None) -> tuple[str, ...]:
    """Return the settings that a parameter leaves the rest of 1 to."""
    return ("weights.0",) if parameter is not None and parameter.tunes == SHARE else ()


def _longest(fusion: ReplayedFusion) -> int:
    return max(map(len, fusion.lists), default=0)


def _bounds(fusion: ReplayedFusion, name: str) -> tuple[float, float]:
    """Return sensible bounds if no parameter sets them; MMR's pool ends where its span does."""
    if name in ("lam", SHARE):
        return 0.0, 1.0
    if name.startswith("weights."):
        return 0.0, MAX_WEIGHT
    if name == "pool" and fusion.method != "marginal":
        return 1, _longest(fusion)
    return 1, MAX_K if fusion.method == "rrf" else max(1, len(fusion.near))


CALIBRATED = ("low", "high")  # thresholds whose parameter at 0 stands for the calibrated one
LEAST = 0.001  # used instead of 0 for those


def threshold_parameters(route: Route, span: Span, changes: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the parameters that make `changes` (by the argument of the step), as
    `core.analysis.what_if.parameters.as_parameters`.
    """
    moved = {name: value or LEAST if name in CALIBRATED else value for name, value in changes.items()}
    return as_parameters(route, span, moved)
