"""`routes`: what can be run here, and why not what cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from core.cli.common import emit, output_options

if TYPE_CHECKING:
    from core.route import Need, Route


@click.command("routes")
@output_options
def routes_(as_json: bool) -> int:
    """List every route: what it needs, whether it can run here, its knobs and its source."""
    from core import settings
    from core.engine import Engine
    from core.route import Need, routes

    engine = Engine(settings.current())
    reasons = {Need.LLM: engine.llm().status()}
    listed = [_route(route, reasons) for route in routes().values()]
    emit({"routes": listed}, lambda: _text(listed), as_json=as_json)
    return 0


def _route(route: Route, reasons: dict[Need, str | None]) -> dict[str, Any]:
    why_not = next((reason for need in route.needs if (reason := reasons.get(need))), None)
    return {
        "name": route.name,
        "title": route.title,
        "family": route.family,
        "summary": route.summary,
        "paper": route.paper,
        "needs": [need.value for need in route.needs],
        "available": why_not is None,
        "why_not": why_not,
        "knobs": [
            {
                "name": knob.name,
                "type": knob.type.__name__,
                "default": knob.default,
                "low": knob.low,
                "high": knob.high,
                "choices": list(knob.choices),
                "help": knob.help,
            }
            for knob in route.knobs
        ],
    }


def _text(listed: list[dict[str, Any]]) -> str:
    from core.cli.text import table

    rows = [
        (
            route["name"],
            route["family"],
            "yes" if route["available"] else "no",
            ", ".join(f"{knob['name']}={knob['default']}" for knob in route["knobs"]) or "-",
            route["why_not"] or route["summary"],
        )
        for route in listed
    ]
    return table(("route", "family", "available", "knobs", "what it does, or why it cannot"), rows)
