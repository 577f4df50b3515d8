"""Why: where each passage was found and where it was lost."""

from __future__ import annotations

from ui.app import opened
from ui.why import page

run = opened.opened("where each passage was found and where it was lost")
if run is not None:
    page.draw(run)
    opened.link()
