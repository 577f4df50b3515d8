"""Compare: the question, the routes side by side, and the views below them.

Imports core, ui.charts, ui.app and ui.components.
"""
