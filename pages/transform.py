"""Transform: what each route made of the question."""

from __future__ import annotations

from ui.app import opened
from ui.transform import page

run = opened.opened("how each route rewrote the question")
if run is not None:
    page.draw(run)
    opened.link()
