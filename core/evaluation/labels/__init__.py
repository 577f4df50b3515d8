"""Relevance judgements that people make: sets, pools, agreement, the grade that counts, exchange."""
