"""Routes, presets and parameters that the options of a command name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.domain.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from core.engine.engine import Engine
    from core.routes.declare import Route
    from core.store.presets import Preset


def preset_of(engine: Engine, name: str | None) -> Preset:
    """Return a preset, checked against the known routes; an empty one without a name.

    Raises BadInput or Unavailable with the reason.
    """
    from core.evaluation.tuning.saving import settled
    from core.store import presets

    if name is None:
        return presets.Preset("", "")
    if engine.store is None:
        raise Unavailable(f"run storage is off, so the preset {name!r} cannot be read")
    kept = presets.named(engine.store, name)
    settled(kept)
    return kept


def chosen(routes: str | None, preset: Preset) -> list[Route]:
    """Return the routes of --routes, else those of the preset."""
    from core.routes.registry import pick

    names = routes if routes is not None else list(preset.parameters)
    return pick(names) if routes is not None or names else []


def merged(preset: Preset, routes: Sequence[Route], given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the preset's parameters for the routes; those of --parameter take precedence."""
    own = read_parameters(given, routes)
    both = {one.name: {**preset.parameters.get(one.name, {}), **own.get(one.name, {})} for one in routes}
    return {name: values for name, values in both.items() if values}


def read_parameters(given: Sequence[str], routes: Sequence[Route]) -> dict[str, dict[str, str]]:
    """{route: {parameter: value}} from "route.parameter=value", checked against the routes chosen."""
    parameters: dict[str, dict[str, str]] = {}
    for item in given:
        name, equals, value = item.partition("=")
        route, dot, parameter = name.rpartition(".")  # an embedder's name may have dots
        if not (equals and dot and route and parameter):
            raise BadInput(f"cannot read parameter {item!r}; write ROUTE.NAME=VALUE, for example hyde.n=3")
        parameters.setdefault(route, {})[parameter] = value
    known = {route.name: route for route in routes}
    for name, values in parameters.items():
        if name not in known:
            raise BadInput(
                f"parameters for {name!r}, which is not one of the chosen routes: {', '.join(known)}"
            )
        known[name].settle(values)
    return parameters


def with_own(routes: Sequence[Route], own: Sequence[str]) -> list[Route]:
    """Return the routes and the pipelines named `own`, each once."""
    from core.routes.registry import pick

    return list(dict.fromkeys([*routes, *(pick(list(own)) if own else [])]))
