"""Tune: thresholds, knobs and weights chosen on labelled questions."""

from __future__ import annotations

from ui import calibrating, learning, sweeping, tabs

tabs.tabs(
    {
        "Calibration": calibrating.draw,
        "Sweeps": sweeping.draw,
        "Learned fusion": learning.draw,
    },
    "tune",
)
