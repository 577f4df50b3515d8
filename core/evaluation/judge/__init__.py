"""A model that judges relevance, held against people's labels before anything may rest on it."""
