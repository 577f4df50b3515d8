"""Settings: every setting, the endpoints tried, models and versions.

Imports core, ui.charts, ui.app and ui.components.
"""
