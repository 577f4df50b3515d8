"""Why: where each passage was found and where it was lost."""

from __future__ import annotations

from ui import opened, why_page
from ui.gold import gold_grades

run = opened.opened("where each passage was found and where it was lost")
if run is not None:
    why_page.draw(run, gold_grades(run))
    opened.link()
