"""Release: which route to ship, why, and how sure that is.

Imports core, ui.charts, ui.app and ui.components.
"""
