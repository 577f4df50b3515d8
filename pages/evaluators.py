"""Evaluators: grades, thresholds and decisions."""

from __future__ import annotations

from ui import evaluators, opened
from ui.gold import gold_grades
from ui.plot import dark

run = opened.opened("grades, thresholds and decisions")
if run is not None:
    evaluators.draw(run, gold_grades(run), dark=dark())
    opened.link()
