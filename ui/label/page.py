"""Label: a set of questions, the passages to judge for them, the queue, agreement and the labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from core.evaluation.labels.desk import Desk
from ui.app import address, opened, redraw, say
from ui.app.tabs import tabs
from ui.label import agreement, generated, labels, nuggets, pairs, pool, queue, sets
from ui.label.desk import held


def draw() -> None:
    """Draw the page for the chosen set, or how to create one."""
    with say.errors():
        name = sets.choose()
        if name is not None:
            _views(name)
    opened.link()


@st.fragment  # a click leaves the choice of the set and the sidebar as they are
def _views(name: str) -> None:
    if st.query_params.get("set") != name:  # it was deleted, or another one restored
        redraw.page()
    with say.errors():
        desk = held(name).desk
        views: dict[str, Callable[[Desk], None]] = {
            "Label": queue.draw if any(desk.pool.values()) else pool.draw,
            "Pairs": pairs.draw,
            "Generated questions": generated.draw,
            "Pool": pool.draw,
            "Nuggets": nuggets.draw,
            "Agreement": agreement.draw,
            "Labels": labels.draw,
            "Set": sets.about,
        }
        drawn = {view: partial(_view, view, draw_it, desk) for view, draw_it in views.items()}
        tabs(drawn, "label_tab", {"Pool": partial(pool.draw, desk)} if views["Label"] is queue.draw else None)


def _view(view: str, draw_it: Callable[[Desk], None], desk: Desk) -> None:
    if view not in ("Label", "Agreement"):  # those show one passage, and the address says which
        address.keep("question", None)
        address.keep("passage", None)
    draw_it(desk)
