"""Steps: what a run's rewrites, fusions, evaluators and walks did to the ranking."""

from __future__ import annotations

from typing import Any

from ui.app import address, opened
from ui.app.choice import choice
from ui.components.gold import gold_grades
from ui.evaluators import page as evaluators
from ui.fusion import page as fusion
from ui.graph import page as graph
from ui.transform import page as transform

VIEWS = {
    "Transform": lambda run, _: transform.draw(run),
    "Fusion": fusion.draw,
    "Evaluators": lambda run, gold: evaluators.draw(run, gold),
    "Graph": graph.draw,
}

run = opened.opened("how each step changed the question and the ranking")
if run is not None:
    given: Any = {"label_visibility": "collapsed", "on_change": lambda: address.keep("tab", None)}
    view = choice("view", "steps_view", "Kind of step", list(VIEWS), segmented=True, **given)
    VIEWS[view](run, gold_grades(run))
    opened.link()
