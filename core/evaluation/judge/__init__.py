"""A model that judges relevance, compared with people's labels before anything may rest on it."""
