"""Evaluate: routes measured on labelled questions.

Imports core, ui.charts, ui.app and ui.components.
"""
