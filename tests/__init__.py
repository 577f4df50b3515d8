"""The tests, and what they share: fakes, tiny models, made-up runs.

`unit` opens no page, `pages` runs pages in this process, `browser` drives the real app, `trust` shows what
docs/security.md promises. Tests may import anything; only `bench` imports their made-up runs.
"""
