"""Your pipeline: the pipelines of one's own, what became of each, and how to add one.

Imports core, ui.app and ui.components. Nothing here adds, changes or names code that is run.
"""
