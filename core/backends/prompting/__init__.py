"""Model prompts and replies: prompts, untrusted text, replies in JSON, citations.

Imports only the domain, as enrichments of a corpus prompt models, too.
"""
