"""The nouns: runs, spans and outputs, needs, errors, settings, text and numbers as people read them.

Imports no other room.
"""
