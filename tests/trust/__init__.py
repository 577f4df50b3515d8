"""Acceptance tests of reliability and security: docs/security.md says what they show.

All carry the marker `trust`, so that `make test-trust` runs them, wherever they are: what a test is about
decides its file.
"""
