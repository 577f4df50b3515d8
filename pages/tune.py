"""Tune: thresholds, parameters and weights chosen on labelled questions."""

from __future__ import annotations

from ui.app import tabs
from ui.tune import calibration, fusion_weights, sweep

tabs.tabs(
    {
        "Calibration": calibration.draw,
        "Sweeps": sweep.draw,
        "Learned fusion": fusion_weights.draw,
    },
    "tune",
)
