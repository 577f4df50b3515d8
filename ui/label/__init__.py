"""Label: sets, pools, the queue, agreement and the labels.

Imports core, ui.charts, ui.app and ui.components.
"""
