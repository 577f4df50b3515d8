"""Settings: what works here, what each endpoint can do, and what is set."""

from __future__ import annotations

from ui.app.tabs import tabs
from ui.settings import edit, health, models, people, probes

tabs(
    {
        "Health": health.draw,
        "Endpoints": probes.draw,
        "Models": models.draw,
        "Settings": edit.draw,
        "People": people.draw,
    },
    "settings_tab",
)
