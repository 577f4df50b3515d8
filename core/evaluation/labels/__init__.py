"""Relevance judgements that people make: sets, pools, agreement, the final grade, files."""
