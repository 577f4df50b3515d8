"""Transform: what each route made of the question."""

from __future__ import annotations

from ui import opened, transform

run = opened.opened("what each route made of the question")
if run is not None:
    transform.draw(run)
    opened.link()
