"""Label: relevance judgements by people."""

from __future__ import annotations

from ui.label import page

page.draw()
