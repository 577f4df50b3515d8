"""Messages in plain text, escaped: captions, notes, warnings and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import streamlit as st

from core.domain.errors import RouteScopeError
from ui.app.markup import md

Width = int | Literal["stretch", "content"]


def text(line: object) -> None:
    """Draw a line of the page."""
    st.markdown(md(str(line)))


def caption(text: object, width: Width = "stretch") -> None:
    """Draw a small grey line."""
    st.caption(md(str(text)), width=width)


def info(text: object) -> None:
    """Draw a note."""
    st.info(md(str(text)))


def warning(text: object) -> None:
    """Draw a warning."""
    st.warning(md(str(text)))


def error(text: object) -> None:
    """Draw an error."""
    st.error(md(str(text)))


@contextmanager
def errors(draw: Callable[[str], object] = st.error) -> Iterator[None]:
    """Draw a RouteScopeError of the block instead of raising it, by `draw`, such as st.toast."""
    try:
        yield
    except RouteScopeError as error:
        draw(md(str(error)))
