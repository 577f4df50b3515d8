"""Parts of a view in the page's address: read once when they change, and kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

SEEN = "address_seen:{}"  # the value of a parameter that was last taken or kept


def take(name: str, key: str, read: Callable[[str], Any]) -> None:
    """Store the address parameter `name` in the session under `key` if it is new; call it before the widget.

    `read` converts the text. If it raises ValueError or KeyError, the state stays as it is.
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
    """Return whether the address has a value of `name` that no widget has read yet."""
    given = st.query_params.get(name)
    return given is not None and given != st.session_state.get(SEEN.format(name))


def keep(name: str, value: str | None) -> None:
    """Set the address parameter `name`; None or "" removes it, since defaults are not in the address."""
    value = value or None
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value
    st.session_state[SEEN.format(name)] = value


def one_of(options: list[Any]) -> Callable[[str], Any]:
    """Return a reader for `take` that maps an option's text to the option."""
    return {str(option): option for option in options}.__getitem__


def here(path: str | None = None, **parameters: str) -> str:
    """Return the full address of this view, or of another page with `parameters` if `path` is given."""
    now = urlsplit(st.context.url or "")
    if path is None:
        return urlunsplit((now.scheme, now.netloc, now.path, urlencode(st.query_params.to_dict()), ""))
    return urlunsplit((now.scheme, now.netloc, path, urlencode(parameters), ""))
