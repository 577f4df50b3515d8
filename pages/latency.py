"""Latency: where the time goes."""

from __future__ import annotations

from ui import latency, opened
from ui.plot import dark

run = opened.opened("where the time goes")
if run is not None:
    latency.draw(run, dark=dark())
    opened.link()
