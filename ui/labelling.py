"""Label: a set of questions, the passages to judge for them, the queue, agreement and the labels."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.domain.errors import RouteScopeError
from core.evaluation.labels.types import Desk
from ui import address, label_agreement, label_labels, label_pool, label_queue, label_sets, opened
from ui.label_desk import held
from ui.markup import md
from ui.tabs import tabs


def draw() -> None:
    """Draw the page for the chosen set, else what to do first."""
    try:
        name = label_sets.choose()
        if name is not None:
            _views(held(name).desk)
    except RouteScopeError as error:
        st.error(md(str(error)))
    opened.link()


def _views(desk: Desk) -> None:
    views: dict[str, Callable[[Desk], None]] = {
        "Label": label_queue.draw if any(desk.pool.values()) else label_pool.draw,
        "Pool": label_pool.draw,
        "Agreement": label_agreement.draw,
        "Labels": label_labels.draw,
        "Set": label_sets.about,
    }
    tabs({name: lambda name=name: _view(name, views[name], desk) for name in views}, key="label_tab")  # type: ignore[misc]


def _view(name: str, draw_it: Callable[[Desk], None], desk: Desk) -> None:
    if name not in ("Label", "Agreement"):  # those show one passage, and the address says which
        address.keep("question", None)
        address.keep("passage", None)
    draw_it(desk)
