"""Commands for developers: screenshots, recordings, the tables of docs/figures.md, new routes.

May import anything; only tests and `bench` import it.
"""
