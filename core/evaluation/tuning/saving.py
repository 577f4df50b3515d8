"""A chosen threshold as a parameter or setting, and a preset that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.analysis.what_if.parameters import LEAST, threshold_parameters
from core.domain.errors import BadInput
from core.evaluation.tuning.threshold_cases import Target
from core.routes.registry import pick, routes
from core.store.presets import Preset

EVIDENCE = "answer_evidence"  # the setting that a preset's `evidence` stands in for


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that gives a route another threshold: its parameters, or the evidence that all routes
    need.
    """

    route: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    evidence: float | None = None

    @property
    def name(self) -> str:
        """Return the name of the setting, as a note begins with it."""
        return (
            EVIDENCE if self.evidence is not None else ", ".join(f"{self.route}.{n}" for n in self.parameters)
        )


def setting(target: Target, threshold: float) -> Setting:
    """Return the parameters that set the threshold of `target`; BadInput, with the reason, if
    nothing does.
    """
    if target.by_settings:
        if not 0 <= threshold <= 1:
            raise BadInput(f"the evidence an answer needs is a probability from 0 to 1, not {threshold:g}")
        return Setting(target.route, evidence=threshold)
    route = routes().get(target.route)
    if route is None or target.span is None:
        raise BadInput(f"this version has no route {target.route!r}, so the threshold cannot be saved")
    parameters = threshold_parameters(route, target.span, {target.name: threshold})
    if not parameters:
        raise BadInput(
            f"{route.title} has no parameter for the threshold of “{target.step}”, so it cannot be saved"
        )
    return Setting(target.route, parameters)


def merged(before: Preset | None, name: str, corpus: str, chosen: Setting, note: str) -> Preset:
    """Return a preset with `chosen` added; the other values of `before` stay. `note` is a line on its origin
    and replaces an earlier one on the same parameter.

    BadInput for a preset of another corpus, or a lower threshold above its upper one.
    """
    kept = before or Preset(name, corpus)
    if kept.corpus != corpus:
        raise BadInput(f"preset {name!r} was made for corpus {kept.corpus}, not {corpus}; give another name")
    parameters = {route: dict(values) for route, values in kept.parameters.items()}
    if chosen.parameters:
        parameters[chosen.route] = {**parameters.get(chosen.route, {}), **chosen.parameters}
    begins = f"{chosen.name}: "
    lines = [line for line in kept.note.splitlines() if not line.startswith(begins)]
    evidence = kept.evidence if chosen.evidence is None else chosen.evidence
    after = replace(kept, parameters=parameters, evidence=evidence, note="\n".join([*lines, begins + note]))
    _in_order(after)
    return after


def changes(before: Preset | None, after: Preset) -> list[str]:
    """Return the changes of saving `after` instead of `before`, one line a value."""
    old, new = ({} if one is None else _values(one) for one in (before, after))
    return [
        f"{name}: {'not set' if name not in old else _text(old[name])} → {_text(value)}"
        for name, value in new.items()
        if name not in old or old[name] != value
    ]


def settled(preset: Preset) -> dict[str, dict[str, Any]]:
    """Return the parameters by route, checked. Raises BadInput naming the route or parameter that this
    version has not, or the value it does not allow.
    """
    try:
        found = {route.name: route for route in pick(list(preset.parameters))} if preset.parameters else {}
        whole = {name: found[name].settle(values) for name, values in preset.parameters.items()}
        _in_order(preset)
    except BadInput as error:
        raise BadInput(f"preset {preset.name!r} cannot be used as it is: {error}") from None
    return {
        name: {parameter: whole[name][parameter] for parameter in given}
        for name, given in preset.parameters.items()
    }


def in_words(preset: Preset) -> str:
    """Return the values of a preset, in one line."""
    return ", ".join(f"{name} = {_text(value)}" for name, value in _values(preset).items())


def _values(preset: Preset) -> dict[str, Any]:
    found = {
        f"{route}.{name}": value
        for route, values in preset.parameters.items()
        for name, value in values.items()
    }
    return found if preset.evidence is None else {**found, EVIDENCE: preset.evidence}


def _in_order(preset: Preset) -> None:
    """BadInput where a route's lower threshold is above its upper one."""
    for name, values in preset.parameters.items():
        route = routes().get(name)
        given = {
            parameter.tunes: values[parameter.name]
            for parameter in (route.parameters if route else ())
            if parameter.name in values and parameter.tunes in ("low", "high")
        }
        low, high = given.get("low", 0), given.get("high", 0)
        if low > LEAST and high > LEAST and low > high:
            raise BadInput(f"the lower threshold of {name}, {low:g}, would be above its upper one, {high:g}")


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
