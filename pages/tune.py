"""Tune: thresholds, parameters and weights chosen on labelled questions."""

from __future__ import annotations

from ui.app import account, tabs
from ui.tune import calibration, fusion_weights, sweep

account.notice("edit")
tabs.tabs(
    {
        "Calibration": calibration.draw,
        "Sweeps": sweep.draw,
        "Learned fusion": fusion_weights.draw,
    },
    "tune",
)
