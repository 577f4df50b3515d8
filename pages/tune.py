"""Tune: thresholds, parameters and weights chosen on labelled questions."""

from __future__ import annotations

from functools import partial

from ui.app import account, evaluated, opened
from ui.app.tabs import tabs
from ui.tune import calibration, fusion_weights, sweep

VIEWS = {"Calibration": calibration.draw, "Sweeps": sweep.draw, "Learned fusion": fusion_weights.draw}

account.notice("edit")
evaluation = evaluated.chosen()
if evaluation is not None:
    tabs({name: partial(draw, evaluation) for name, draw in VIEWS.items()}, "tune")
opened.link()
