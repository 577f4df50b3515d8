"""Evaluators: grades, thresholds and decisions."""

from __future__ import annotations

from ui.app import opened
from ui.app.plot import dark
from ui.components.gold import gold_grades
from ui.evaluators import page

run = opened.opened("how passages were graded, and what each threshold decided")
if run is not None:
    page.draw(run, gold_grades(run), dark=dark())
    opened.link()
