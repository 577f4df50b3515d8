"""What pages need to be visited, as the tests of the pages have it."""

from tests.pages.conftest import as_one_server, engine, once, runs, stored, view, visit

__all__ = ["as_one_server", "engine", "once", "runs", "stored", "view", "visit"]
