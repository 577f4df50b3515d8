"""Settings and health: what works here, what each endpoint can do, and what is set."""

from __future__ import annotations

from ui import edit_settings, endpoints, models, versions
from ui.tabs import tabs

tabs(
    {
        "Health": versions.health,
        "Endpoints": endpoints.draw,
        "Models": models.draw,
        "Settings": edit_settings.draw,
        "Versions": versions.draw,
    },
    "settings_tab",
)
