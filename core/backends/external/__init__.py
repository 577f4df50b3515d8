"""Pipelines that are not ours, asked live: a function in its own interpreter, an endpoint.

`runner` runs in that interpreter and imports nothing of this project.
"""
