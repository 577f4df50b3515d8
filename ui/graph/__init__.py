"""Graph: what a walk over the graph of entities began at, and where it went.

Imports core, ui.charts, ui.app and ui.components.
"""
