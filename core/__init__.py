"""RouteScope's engine: every retrieval route on one question, side by side.

The rooms, from low to high: domain, backends, corpus, steps, routes, store, analysis, engine, evaluation,
api, cli. Each may import those before it. Nothing here imports streamlit, `ui` or `pages`.
"""
