"""Downloads that are made when they are asked for, on behalf of who asks."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from typing import Any

import streamlit as st

from core.domain import people
from core.domain.people import Deed
from ui.app import account


def download(
    label: str, file: str, make: Callable[[], Any], key: str, deed: Deed = "export", **given: Any
) -> None:
    """Draw a button that saves what `make` returns as `file`, for those who may do the deed."""
    work, kind = people.by_me(make), mimetypes.guess_type(file)[0]
    needs = account.needs(deed, **given)
    st.download_button(label, work, file_name=file, mime=kind, on_click="ignore", key=key, **needs)
