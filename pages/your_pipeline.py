"""Your pipeline: your own routes, their state, and how to add one."""

from __future__ import annotations

from ui.your_pipeline import page

page.draw()
