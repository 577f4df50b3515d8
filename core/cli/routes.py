"""`routes` and `module`: the routes there are, and one of them as a Python module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.cli.commands import PARAMETERS, PRESET, argument, command
from core.cli.common import attributes, emit, table
from core.cli.named import merged, preset_of
from core.domain import settings
from core.domain.errors import BadInput
from core.domain.models import AT
from core.domain.needs import Need
from core.engine import engine as engines
from core.engine.availability import cautions, missing, why_not
from core.engine.endpoints import EndpointReport, endpoints
from core.evaluation.release.module import module
from core.evaluation.spec import option
from core.evaluation.templating import say
from core.routes import families
from core.routes.declare import Route
from core.routes.registry import pick, routes


@command("routes")
def routes_(
    corpus: str | None = option(None, "Also show which enrichments this corpus still needs.", "NAME"),
) -> None:
    """List every route with its requirements, availability, parameters and source."""
    engine = engines.Engine(settings.current())
    gaps = missing(engine, corpus)
    affected = _affected(endpoints(engine.settings))
    listed = [
        _route(route, gaps)
        | {
            "cautions": cautions(engine, route),
            "affected": [what for what, names in affected.items() if route.name in names],
        }
        for route in routes().values()
    ]
    emit({"routes": listed}, lambda: _text(listed, affected))


def _affected(reports: Iterable[EndpointReport]) -> dict[str, dict[str, None]]:
    """By what is known of an endpoint, in words: the routes that it affects."""
    return {
        f"{one.title} ({one.model} at {one.address}): {what}": dict.fromkeys(
            name.partition(AT)[0] for name in names
        )
        for one in reports
        if one.kind != "web search"  # routes do without it, and say so
        for what, names in one.affected.items()
    }


def _route(route: Route, gaps: Mapping[Need, str]) -> dict[str, Any]:
    lack = why_not(route, gaps)
    return {
        **attributes(route, "name title family summary paper"),
        "recommended": families.recommended(route.name),
        "standing": families.standing(route.name),
        "needs": [need.value for need in route.needed(route.settle({}))],
        "available": lack is None,
        "why_not": lack,
        "parameters": [
            {**asdict(parameter), "type": parameter.type.__name__, "choices": list(parameter.choices)}
            for parameter in route.parameters
        ],
    }


def _text(listed: list[dict[str, Any]], affected: Mapping[str, Mapping[str, None]]) -> str:
    rows, parameters = [], []
    for route in listed:
        able = "yes" if route["available"] else "no"
        family = route["family"] + ", recommended" * route["recommended"]
        rows.append((route["name"], family, able, route["standing"], route["summary"]))
        for one in route["parameters"]:
            name = f"{route['name']}.{one['name']}"
            parameters.append((name, repr(one["default"]), _allowed(one), one["help"]))
    grid = table(("route", "family", "available", "measured", "what it does"), rows)
    heads = ("parameter", "default", "allowed", "what it does")
    return say("commands.routes", listed, affected, grid, table(heads, parameters))


def _allowed(parameter: dict[str, Any]) -> str:
    if parameter["choices"]:
        return ", ".join(parameter["choices"])
    if parameter["low"] is not None and parameter["high"] is not None:
        return f"{parameter['low']:g} to {parameter['high']:g}"
    return {"bool": "true, false", "str": "text"}.get(parameter["type"], "a number")


@command("module")
def module_(
    route_name: str = argument("ROUTE"),
    corpus: str = option("support", "A corpus that `corpora` lists."),
    parameters: Sequence[str] = PARAMETERS,
    preset: str | None = PRESET,
    out: Path | None = option(None, "Output file. Default: stdout.", "FILE"),
    force: bool = option(False, "Overwrite an existing file."),
) -> None:
    """Write ROUTE as a small Python module that imports `core`, with the code path of `ask`."""
    engine = engines.shared_engine()
    (route,) = pick([route_name])
    kept = preset_of(engine, preset)
    values = merged(kept, [route], parameters).get(route.name, {})
    if out is not None and out.exists() and not force:
        raise BadInput(f"{out} already exists; use another --out, or --force to overwrite it")
    purpose = "parameters set by hand" if preset is None else f"with the preset {kept.name}"
    file = out.name if out is not None else "route.py"
    text = module(engine, route.name, corpus, values, evidence=kept.evidence, purpose=purpose, file=file)
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"cannot write --out {out}: {error.strerror or error}") from None
    told = {"route": route.name, "corpus": corpus, "file": str(out) if out else None, "source": text}
    emit(told, f"Wrote {out}" if out else text)
