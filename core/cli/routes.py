"""`routes`: the routes, and why some cannot run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from core.cli.commands import command
from core.cli.common import attributes, emit
from core.cli.text import table
from core.domain.models import AT
from core.domain.text import one_line
from core.engine.availability import why_not
from core.evaluation.spec import option

if TYPE_CHECKING:
    from core.domain.needs import Need
    from core.engine.endpoints import ChatEndpoint, EndpointReport
    from core.routes.declare import Route


@command("routes")
def routes_(
    corpus: str | None = option(None, "Also show which enrichments this corpus still needs.", "NAME"),
) -> None:
    """List every route with its requirements, availability, parameters and source."""
    from core.domain import settings
    from core.engine.availability import cautions, missing
    from core.engine.endpoints import chat_endpoints, service_reports
    from core.engine.engine import Engine
    from core.routes.registry import routes

    engine = Engine(settings.current())
    gaps = missing(engine, corpus)
    affected = _affected(
        chat_endpoints(engine.settings, quick=True), service_reports(engine.settings, quick=True)
    )
    listed = [
        _route(route, gaps)
        | {
            "cautions": cautions(engine, route),
            "affected": [what for what, names in affected.items() if route.name in names],
        }
        for route in routes().values()
    ]
    emit({"routes": listed}, lambda: _text(listed, affected))


def _affected(chat: Sequence[ChatEndpoint], others: Sequence[EndpointReport]) -> dict[str, dict[str, None]]:
    """By what was found of an endpoint, in words: the routes that it affects. Calls nobody."""
    found: dict[str, dict[str, None]] = {}
    for one in chat:
        about = f"{one.name} ({one.model} at {one.address})"
        for what, names in one.affected.items():
            said = f"does not answer: {one.error}" if what == "chat" else what
            found[f"{about}: {said}"] = dict.fromkeys(name.partition(AT)[0] for name in names)
    for other in others:
        if other.error:
            found[f"{other.kind} {other.name} ({other.address}): {other.error}"] = dict.fromkeys(other.routes)
    return found


def _route(route: Route, gaps: Mapping[Need, str]) -> dict[str, Any]:
    lack = why_not(route, gaps)
    return {
        **attributes(route, "name title family summary paper"),
        "needs": [need.value for need in route.needed(route.settle({}))],
        "available": lack is None,
        "why_not": lack,
        "parameters": [
            {**asdict(parameter), "type": parameter.type.__name__, "choices": list(parameter.choices)}
            for parameter in route.parameters
        ],
    }


def _text(listed: list[dict[str, Any]], affected: Mapping[str, Mapping[str, None]]) -> str:
    rows = [
        (route["name"], route["family"], "yes" if route["available"] else "no", route["summary"])
        for route in listed
    ]
    parameters = [
        (
            f"{route['name']}.{parameter['name']}",
            repr(parameter["default"]),
            _allowed(parameter),
            parameter["help"],
        )
        for route in listed
        for parameter in route["parameters"]
    ]
    reasons = sorted({route["why_not"] for route in listed if route["why_not"]})
    return "\n".join(
        [
            table(("route", "family", "available", "what it does"), rows),
            *(f"not available: {reason}" for reason in reasons),
            *(f"{route['name']}: {one}" for route in listed for one in route["cautions"]),
            *(
                one_line(f"{what}; affects {len(names)} routes: {', '.join(names)}")
                for what, names in affected.items()
            ),
            "",
            table(("parameter", "default", "allowed", "what it does"), parameters),
        ]
    )


def _allowed(parameter: dict[str, Any]) -> str:
    if parameter["choices"]:
        return ", ".join(parameter["choices"])
    if parameter["low"] is not None and parameter["high"] is not None:
        return f"{parameter['low']:g} to {parameter['high']:g}"
    return {"bool": "true, false", "str": "text"}.get(parameter["type"], "a number")
