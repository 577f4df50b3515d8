"""Latency: where the time goes."""

from __future__ import annotations

from ui.app import opened
from ui.latency import page

run = opened.opened("where the time goes")
if run is not None:
    page.draw(run)
    opened.link()
