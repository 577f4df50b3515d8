"""How a model is prompted and its reply read: prompts, untrusted text, replies in JSON, citations.

Imports only the domain: what is made once for a corpus prompts models, too.
"""
