"""Graph: where a walk over the corpus' graph of entities began, and where it went."""

from __future__ import annotations

from ui.app import opened
from ui.components import gold
from ui.graph import page

run = opened.opened("which entities a route began at, and where its walk over the graph went")
if run is not None:
    page.draw(run, gold.gold_grades(run))
    opened.link()
