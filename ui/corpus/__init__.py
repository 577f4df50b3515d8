"""Corpus: documents, passages, near-duplicates, the index and its enrichments.

Imports core, ui.charts, ui.app and ui.components.
"""
