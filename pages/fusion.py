"""Fusion: what each list gives to each fused score, and what other weights would do."""

from __future__ import annotations

from ui import fusion, gold, opened

run = opened.opened("what each list gives to the fused ranking")
if run is not None:
    fusion.draw(run, gold.gold_grades(run))
    opened.link()
