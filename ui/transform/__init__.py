"""Transform: what each route made of the question.

Imports core, ui.charts, ui.app and ui.components.
"""
