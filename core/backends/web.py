"""The configured web search: a live one, the local snapshot, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.backends.base import WebSearch
from core.domain.program import COMMAND

if TYPE_CHECKING:
    from core.domain.settings import Settings

SNAPSHOT, NONE = "snapshot", "none"  # the settings that are no address
HOW = (
    "set web_search (ROUTESCOPE_WEB_SEARCH) to the address of a SearXNG instance that answers in JSON, or to"
    f" {SNAPSHOT} for stored pages ({COMMAND} index web)"
)


def load_web(settings: Settings, snapshot: Callable[[], WebSearch]) -> WebSearch | None:
    """Return the configured web search, or None.

    Raises BadInput for an invalid address, and the errors of `snapshot` if that is configured.
    """
    chosen = settings.web_search
    if chosen == NONE:
        return None
    if chosen == SNAPSHOT:
        return snapshot()
    from core.backends.searxng import Searxng

    return Searxng(chosen, private=settings.private("web_search"), secrets=settings.secrets())
