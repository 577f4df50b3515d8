"""Labelled questions, metrics over them, and honest comparisons of routes: labels, tuning, release.

Runs routes only through the engine. Imports every room but cli.
"""
