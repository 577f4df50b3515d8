"""Views of a stored run: lineage, diagnosis, what-if, timeline, costs, differences. Pure: no I/O. Imports
domain, backends, corpus, steps, routes and store; never the engine.
"""
