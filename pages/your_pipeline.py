"""Your pipeline: routes that are not ours, what became of each, how to add one."""

from __future__ import annotations

from ui.your_pipeline import page

page.draw()
