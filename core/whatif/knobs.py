"""Which knobs of a route set what was tried on a stored step, and what can be tried at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.route import KnobSpec, Route
from core.types import Span
from core.whatif.fusion import Fusion, number

MAX_K, MAX_WEIGHT = 1000, 10.0  # where no knob says what is sensible


@dataclass(frozen=True, slots=True)
class Control:
    """One setting of a fusion that can be moved. `names` are the settings it sets, all to the same value;
    `low` and `high` are None for a choice; `knob` is None where the route has none for it.
    """

    name: str
    label: str
    value: Any
    names: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    whole: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    knob: str | None = None

    def changes(self, value: Any) -> dict[str, Any]:
        """What moving it to `value` changes; nothing where it stays."""
        return {} if value == self.value else dict.fromkeys(self.names, value)


def tuned(knob: KnobSpec) -> tuple[str, ...]:
    """The settings of a step that a knob sets: "weights.2,3" sets weights.2 and weights.3."""
    stem, dot, numbers = knob.tunes.partition(".")
    return tuple(f"{stem}.{n}" for n in numbers.split(",")) if dot else (stem,) if stem else ()


def as_knobs(route: Route, span: Span, changes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The knobs of `route` that make its next run do what `changes` does to the step `span`.

    `changes` are by the input of the step ("k", "weights.0", "alpha", "low"...). None where some change has
    no knob, or one knob would have to take several values. BadInput for a value that the knob does not allow.
    """
    found: dict[str, Any] = {}
    met: set[str] = set()
    for knob in route.knobs:
        names = tuned(knob)
        if not names or not any(name in changes for name in names):
            continue
        wanted = {changes[name] if name in changes else _given(span, name) for name in names}
        if len(wanted) > 1:
            return None
        found[knob.name] = route.settle({knob.name: wanted.pop()})[knob.name]
        met.update(names)
    return found if met >= set(changes) else None


def controls(
    route: Route | None, knobs: Mapping[str, Any], fusion: Fusion, names: Sequence[str]
) -> list[Control]:
    """What of `fusion` can be moved, the settings that its route has a knob for with the knob's bounds.

    `knobs` are those the route ran with: a knob is taken for this step's only if its value is the step's.
    `names` are what the lists are called.
    """
    own = _own(route, knobs, fusion)
    groups = list(own)
    if ("alpha",) in own:
        groups = [group for group in groups if not group[0].startswith("weights.")]
    grouped = {name for group in groups for name in group}
    for name in fusion.values:
        if name not in grouped and not (name.startswith("weights.") and "alpha" in grouped):
            groups.append((name,))
    if fusion.method != "marginal" and max(map(len, fusion.lists)) > 1:
        groups.append(("pool",))
    order = ("alpha", "weights", "norm", "k", "lam", "pool")
    groups.sort(key=lambda group: (order.index(group[0].partition(".")[0]), group))
    return [_control(group, fusion, own.get(group), names) for group in groups]


def _control(group: tuple[str, ...], fusion: Fusion, knob: KnobSpec | None, names: Sequence[str]) -> Control:
    name, help, called = group[0], knob.help if knob else "", knob.name if knob else None
    value = _now(fusion, name)
    if name == "norm":
        choices = ("min_max", "dbsf")
        return Control(name, "normalisation", value, group, choices=choices, help=help, knob=called)
    low, high = _bounds(fusion, name)
    if knob is not None:
        low, most = (low if knob.low is None else knob.low), (high if knob.high is None else knob.high)
        high = min(high, most) if fusion.method == "marginal" else most
    if knob is not None and name.startswith("weights.") and int(name.partition(".")[2]) > 1:
        low = max(low, 0.1)  # a list besides a route's own two is not searched at all with weight 0
    if name == "pool" and fusion.method != "marginal":
        help = "how many passages of each list are fused; all of them in the run"
    label = {"lam": "lambda"}.get(name, name)
    if name.startswith("weights."):
        label = f"weight of {_name(name, names)}" if len(group) == 1 else (called or "weight")
    whole = isinstance(value, int) and name in ("k", "pool")
    return Control(name, label, value, group, min(low, value), max(high, value), whole, (), help, called)


def _now(fusion: Fusion, name: str) -> Any:
    if name == "alpha":
        return fusion.values["weights.1"]
    if name == "pool" and fusion.method != "marginal":
        return max(map(len, fusion.lists))
    return fusion.values[name]


def _bounds(fusion: Fusion, name: str) -> tuple[float, float]:
    """What is sensible where no knob says it; MMR's pool ends where its span does."""
    if name in ("lam", "alpha"):
        return 0.0, 1.0
    if name.startswith("weights."):
        return 0.0, MAX_WEIGHT
    if name == "pool" and fusion.method != "marginal":
        return 1, max(map(len, fusion.lists))
    return 1, MAX_K if fusion.method == "rrf" else max(1, len(fusion.near))


def _own(route: Route | None, knobs: Mapping[str, Any], fusion: Fusion) -> dict[tuple[str, ...], KnobSpec]:
    """The knobs that set this step, by the settings they set."""
    found = {}
    for knob in route.knobs if route is not None else ():
        names, value = tuned(knob), knobs.get(knob.name)
        has = {"alpha": fusion.values.get("weights.1")} if fusion.method == "linear" else {}
        now = [{**fusion.values, **has}.get(name) for name in names]
        if names and value is not None and all(one == value for one in now):
            found[names] = knob
    return found


def _name(setting: str, names: Sequence[str]) -> str:
    at = int(setting.partition(".")[2])
    return names[at] if at < len(names) else f"list {at + 1}"


def _given(span: Span, name: str) -> Any:
    """A setting as the step had it; weights that were not given are 1."""
    stem, dot, at = name.partition(".")
    value = span.inputs.get(stem)
    if not dot:
        return value
    if isinstance(value, list) and int(at) < len(value) and number(value[int(at)]):
        return value[int(at)]
    return 1.0
