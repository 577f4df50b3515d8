"""Why: where each passage was found and where it was lost.

Imports core, ui.charts, ui.app and ui.components.
"""
