"""Your pipeline: connected pipelines, trials of them, and how to add one.

It imports core, ui.app and ui.components. Nothing here adds, changes or names code that is run.
"""
