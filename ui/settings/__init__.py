"""Settings: health, the endpoints tried, models and every setting.

Imports core, ui.charts, ui.app and ui.components.
"""
