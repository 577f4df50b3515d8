"""Settings: what works here, what each endpoint can do, and what is set."""

from __future__ import annotations

from ui.app.tabs import tabs
from ui.settings import edit, models, people, probes, versions

tabs(
    {
        "Health": versions.health,
        "Endpoints": probes.draw,
        "Models": models.draw,
        "Settings": edit.draw,
        "People": people.draw,
        "Versions": versions.draw,
    },
    "settings_tab",
)
