"""Models and indexes behind the Protocols of `base`: embedder, BM25, vectors, language model, web search.

Knows texts, vectors and scores, and no corpus or route. May import the domain.
"""
