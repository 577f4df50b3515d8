"""What several pages draw: rankings, passages, tables, citations, costs.

Imports core, ui.charts and ui.app; names no route.
"""
