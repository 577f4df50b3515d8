"""Presets on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.domain.errors import Unavailable

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.routes.declare import Route
    from core.store.presets import Preset


@dataclass(frozen=True, slots=True)
class Applied:
    """The routes and parameters of a preset combined with the other options."""

    routes: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, Any]]
    evidence: float | None


def preset_of(engine: Engine, name: str) -> Preset:
    """Return a preset, checked against the known routes. Raises BadInput or Unavailable with the reason."""
    from core.evaluation.tuning.saving import settled
    from core.store import presets

    if engine.store is None:
        raise Unavailable(f"run storage is off, so the preset {name!r} cannot be read")
    kept = presets.named(engine.store, name)
    settled(kept)
    return kept


def chosen_by(preset: Preset | None, chosen: Sequence[Route]) -> list[Route]:
    """Return the chosen routes, or those of the preset if none was chosen."""
    from core.routes.registry import pick

    return list(chosen) or (pick(list(preset.parameters)) if preset is not None and preset.parameters else [])


def with_preset(
    preset: Preset | None, chosen: Sequence[Route], parameters: Mapping[str, Mapping[str, Any]]
) -> Applied:
    """Return the preset's parameters for the chosen routes; explicit parameters take precedence."""
    names = tuple(route.name for route in chosen)
    if preset is None:
        return Applied(names, parameters, None)
    both = {name: {**preset.parameters.get(name, {}), **parameters.get(name, {})} for name in names}
    return Applied(names, {name: values for name, values in both.items() if values}, preset.evidence)
