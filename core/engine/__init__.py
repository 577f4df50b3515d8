"""Runs routes on a question: requests, resources, availability, jobs, late answers, replay, probes, doctor.

Imports domain, backends, corpus, steps, routes, store and analysis.
"""
