"""Routes as pages show them: titles, families, and why one cannot run now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

import streamlit as st
from markupsafe import Markup

from core.domain import people
from core.domain.needs import Need
from core.domain.program import COMMAND
from core.engine.availability import cautions, why_not
from core.routes.declare import Route
from core.routes.families import recommended, standing
from core.routes.registry import routes
from ui.app import state
from ui.app.glossary import of_source
from ui.app.help_mark import marked
from ui.app.markup import fragment

_COMMAND = re.compile(
    rf"(?:run:? |get one with: |put it there with )?(Build it again: )?{re.escape(COMMAND)} (\w+)"
    r"(?: (?!--)[^\s;,()]+){0,2}(?: --[\w-]+(?: [^\s;()]+)?)*(?:, or fit [^;.]*)?"
)
PLACES = {
    "index": "build it on the page Corpus",
    "models": "fetch it under Settings, Models",
    "fit": "fit them on the page Tune",
    "eval": "evaluate it on the page Evaluate",
    "labels": "measure it on the page Label, Agreement",
    "sessions": "press Free unused space",
}


def on_page(why: str) -> str:
    """Return a reason with the command that helps replaced by the page that does the same."""

    def place(found: re.Match[str]) -> str:
        return "Build it again on the page Corpus" if found[1] else PLACES.get(found[2], found[0])

    return _COMMAND.sub(place, why)


def by_family() -> list[Route]:
    """Return every route by family, the simplest family first."""
    order = {family: n for n, family in enumerate(("baseline", "hybrid", "query", "index", "scoring"))}
    return sorted(
        routes().values(), key=lambda route: (order.get(route.family, 99), route.family, route.title)
    )


def chosen() -> list[str]:
    """Return the routes that Compare asks: by default the first ones that this person may ask."""
    names: list[str] | None = st.session_state.get(state.ROUTES)
    if names is not None:
        return list(names)
    models = people.current().may("ask a model")
    return [route.name for route in by_family() if route.first and (models or not route.asks())]


def also(*names: str) -> None:
    """Put routes among those that Compare asks, before its choice is drawn."""
    st.session_state[state.ROUTES] = list(dict.fromkeys([*chosen(), *names]))


def differing(route: Route, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parameters of a route that differ from their defaults."""
    default = {parameter.name: parameter.default for parameter in route.parameters}
    return {name: value for name, value in values.items() if value != default[name]}


def title(name: str) -> str:
    """Return a route's title, or its name if only a stored run knows it."""
    known = routes().get(name)
    return known.title if known else name


def directory(gaps: Mapping[Need, str]) -> Markup:
    """Draw all routes in a table: purpose, source, what they lack, and unreliable judgements."""
    own = tuple(route for route in by_family() if route.external)
    return _drawn(tuple(gaps.items()), tuple(_cautions().items()), own)


@st.cache_data(ttl=30, show_spinner=False)  # reads a few files, which `calibrate` writes
def _cautions() -> dict[str, tuple[str, ...]]:
    engine = state.engine()
    return {route.name: cautions(engine, route) for route in routes().values() if route.decides}


@lru_cache(maxsize=16)  # drawn at each rerun of Compare, and made of hundreds of elements
def _drawn(
    lacks: tuple[tuple[Need, str], ...],
    warned: tuple[tuple[str, tuple[str, ...]], ...],
    _own: tuple[Route, ...] = (),
) -> Markup:
    gaps, warnings = dict(lacks), dict(warned)
    grouped = []
    for family, members in groupby(by_family(), key=lambda route: route.family):
        rows = []
        for route in members:
            titled = marked(route.title, of_source(route.paper))
            lack = why_not(route, gaps)
            notes = ("recommended" * recommended(route.name), standing(route.name))
            said = tuple(filter(None, (", ".join(filter(None, notes)), *warnings.get(route.name, ()))))
            rows.append((route, titled, on_page(lack) if lack else "", said))
        grouped.append((family, rows))
    return fragment("app.directory", grouped)
