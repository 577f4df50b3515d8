"""Fusion: what each list gives to each fused score, and what other weights would do.

Imports core, ui.charts, ui.app and ui.components.
"""
