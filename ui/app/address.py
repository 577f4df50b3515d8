"""The address says what a page shows: parts of a view are taken from it once, and kept in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

SEEN = "address_seen:{}"  # the value of a parameter that was last taken or kept


def take(name: str, key: str, read: Callable[[str], Any]) -> None:
    """Put the address' `name` under `key` of the session's state, if it is new; before the widget is drawn.

    `read` turns the text into the value, or raises ValueError or KeyError for what this page cannot show: the
    state then stays as it is.
    """
    given = st.query_params.get(name)
    if given is None or st.session_state.get(SEEN.format(name)) == given:
        return
    st.session_state[SEEN.format(name)] = given
    try:
        st.session_state[key] = read(given)
    except (ValueError, KeyError):
        return


def is_new(name: str) -> bool:
    """Whether the address has a value of `name` that no widget has taken yet."""
    given = st.query_params.get(name)
    return given is not None and given != st.session_state.get(SEEN.format(name))


def keep(name: str, value: str | None) -> None:
    """Make the address say `name`; None or "" takes it out: what is as ever needs no mention."""
    value = value or None
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value
    st.session_state[SEEN.format(name)] = value


def one_of(options: list[Any]) -> Callable[[str], Any]:
    """A reader for a choice: the option whose text it is."""
    return {str(option): option for option in options}.__getitem__


def here(path: str | None = None, **parameters: str) -> str:
    """The whole address of what is shown; of another page and view if they are given."""
    now = urlsplit(st.context.url or "")
    if path is None:
        return urlunsplit((now.scheme, now.netloc, now.path, urlencode(st.query_params.to_dict()), ""))
    return urlunsplit((now.scheme, now.netloc, path, urlencode(parameters), ""))
