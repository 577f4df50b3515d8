"""Tune: thresholds, parameters and fusion weights chosen on labelled questions.

Imports core, ui.charts, ui.app and ui.components.
"""
