"""Evaluators: grades, thresholds and decisions.

Imports core, ui.charts, ui.app and ui.components.
"""
