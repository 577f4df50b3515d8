"""Release: which route to ship, why, and how sure that is."""

from __future__ import annotations

from ui.release import page

page.draw()
