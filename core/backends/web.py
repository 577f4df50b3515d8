"""Values of the setting `web_search` other than an address, and how to set a search up."""

from __future__ import annotations

from core.domain.program import COMMAND

SNAPSHOT, NONE = "snapshot", "none"
HOW = (
    "set web_search (ROUTESCOPE_WEB_SEARCH) to the address of a SearXNG instance that answers in JSON, or to"
    f" {SNAPSHOT} for stored pages ({COMMAND} index web)"
)
