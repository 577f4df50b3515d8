"""Latency: where the time goes.

Imports core, ui.charts, ui.app and ui.components.
"""
