"""Sessions: stored runs listed, compared, replayed, imported.

Imports core, ui.charts, ui.app and ui.components.
"""
