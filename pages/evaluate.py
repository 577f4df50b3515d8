"""Evaluate: labelled sets by routes, with the statistics that a decision needs."""

from __future__ import annotations

from ui.evaluate import page

page.draw()
