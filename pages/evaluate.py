"""Evaluate: labelled sets by routes, with the statistics that a decision needs."""

from __future__ import annotations

from ui import evaluating

evaluating.draw()
