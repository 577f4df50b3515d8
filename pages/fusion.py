"""Fusion: what each list gives to each fused score, and what other weights would do."""

from __future__ import annotations

from ui.app import opened
from ui.components import gold
from ui.fusion import page

run = opened.opened("what each list contributes to the fused ranking")
if run is not None:
    page.draw(run, gold.gold_grades(run))
    opened.link()
