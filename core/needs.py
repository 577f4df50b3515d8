"""What of the routes' needs is not met here, with the way to get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.errors import RouteScopeError
from core.route import Need, Route

if TYPE_CHECKING:
    from core.engine import Engine


def missing(engine: Engine, corpus: str | None = None) -> Mapping[Need, str]:
    """The reason for each need that is not met; what has to be made for a corpus, if one is named.

    Reads a few small files, and opens and starts nothing.
    """
    from core.corpus.index import current_fingerprint
    from core.enrich import store

    gaps: dict[Need, str] = {}
    try:
        reason = engine.llm().status()
    except RouteScopeError as error:
        reason = str(error)
    if reason:
        gaps[Need.LLM] = reason
    if corpus is not None:
        fingerprint = current_fingerprint(corpus, settings=engine.settings)
        for need in Need:
            if need.enrichment and (
                lack := store.missing(need.enrichment, corpus, fingerprint, engine.settings)
            ):
                gaps[need] = lack
    return gaps


def why_not(route: Route, gaps: Mapping[Need, str]) -> str | None:
    """The reason a route cannot run, or None."""
    return next((gaps[need] for need in route.needs if need in gaps), None)
