"""Parts that several pages draw: rankings, passages, tables, citations, costs.

They import core, ui.charts and ui.app, and name no route.
"""
