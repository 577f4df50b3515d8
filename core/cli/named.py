"""Routes, presets and parameters that the options of a command name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.cli.commands import PARAMETERS, PRESET
from core.domain.errors import BadInput, Unavailable
from core.domain.filters import Filter, read_filters
from core.domain.pipelines import from_command
from core.engine import engine as engines
from core.evaluation.spec import option
from core.evaluation.tuning.saving import settled
from core.routes.declare import Route
from core.routes.registry import add, pick
from core.store import presets
from core.store.presets import Preset


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options on routes and answers that `ask` and `eval` share."""

    own: tuple[str, ...] = option(
        (),
        "Your own pipeline, FILE.py:FUNCTION or http://host:port/path; repeatable.",
        "NAME=TARGET",
        "--route",
    )
    python: str | None = option(
        None, "The interpreter of --route FILE.py:FUNCTION, or its environment's folder.", "PATH"
    )
    env: tuple[str, ...] = option(
        (), "An environment variable that --route FILE.py:FUNCTION may see; repeatable.", "VARIABLE"
    )
    preset: str | None = PRESET
    parameters: tuple[str, ...] = PARAMETERS
    filters: tuple[Filter, ...] = option(
        (),
        "Find only passages whose metadata meets this: = != < > <= >= ~ (contains) !~, or "
        '"FIELD in A|B"; repeatable.',
        "FIELD=VALUE",
        "--filter",
        read=read_filters,
    )
    answer_by: Literal["model", "extract"] | None = option(
        None, "Written by the language model, or sentences copied from passages."
    )
    answer_order: Literal["best first", "best at both ends"] | None = option(
        None, "Order of the passages in the answer prompt."
    )

    def use_pipelines(self) -> tuple[str, ...]:
        """Add the pipelines of --route to the routes of this process; their names."""
        if (self.python or self.env) and not self.own:
            raise BadInput(f"--{'python' if self.python else 'env'} needs --route NAME=FILE.py:FUNCTION")
        made = [from_command(one, self.python or "", self.env) for one in self.own]
        for pipeline in made:
            add(pipeline)
        return tuple(dict.fromkeys(one.name for one in made))


def preset_of(engine: engines.Engine, name: str | None) -> Preset:
    """Return a preset, checked against the known routes; an empty one without a name.

    Raises BadInput or Unavailable with the reason.
    """
    if name is None:
        return presets.Preset("", "")
    if engine.store is None:
        raise Unavailable(f"run storage is off, so the preset {name!r} cannot be read")
    kept = presets.named(engine.store, name)
    settled(kept)
    return kept


def chosen(routes: str | None, preset: Preset) -> list[Route]:
    """Return the routes of --routes, else those of the preset."""
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
    return list(dict.fromkeys([*routes, *(pick(list(own)) if own else [])]))
