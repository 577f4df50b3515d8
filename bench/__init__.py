"""Measurements of speed: `make bench` writes bench/results.json, `make soak` runs ten people for an hour.

May import all of `core`, `scripts`, and the made-up runs of `tests`.
"""
