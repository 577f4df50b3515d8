"""Commands for developers: screenshots, recordings, the tables of bench/notebook/2026-11.md, new routes.

May import anything; only tests and `bench` import it.
"""
