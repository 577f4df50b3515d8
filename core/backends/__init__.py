"""Real things behind Protocols (see `base`): embedder, indexes, LLM, web search."""
