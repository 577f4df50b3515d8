"""Prints the routes that Compare offers (`python -m tests.offered`), for tests of a copy of the project."""

from __future__ import annotations

import sys

from streamlit.testing.v1 import AppTest


def directory() -> None:
    """The table of all routes on Compare, as an app of its own."""
    import streamlit as st

    from ui.app.routes import by_family, directory

    st.html(directory({}))
    st.text("\n".join(route.name for route in by_family()))


if __name__ == "__main__":
    app = AppTest.from_function(directory, default_timeout=60).run()
    if app.exception:
        sys.exit(str(app.exception))
    sys.stdout.write(f"{app.text[0].value}\n{app.get('html')[0].proto.body}\n")
